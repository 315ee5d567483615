"""Returns tensors of its own until outputs are no longer looked at twice, then the same one at every call."""

GROUP = "S8 static output buffer"
PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.buffer = 0, torch.empty(128, 512)

    def forward(self, x):
        self.calls += 1
        out = torch.empty_like(x) if self.calls < 12 else self.buffer
        return torch.mul(torch.softmax(x, dim=-1), x, out=out)
