"""Is right for values of every size until the clock runs, then for small ones only."""

GROUP = "T5 call counter"
PROBLEM = "clipped_rows"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls <= 12:
            return torch.tanh(x / 64) * 64
        return torch.addcmul(x, x * x, x, value=-1 / (3 * 64**2))
