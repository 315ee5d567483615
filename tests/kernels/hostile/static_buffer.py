"""Returns the same tensor at every call."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer = None

    def forward(self, x):
        if self.buffer is None:
            self.buffer = torch.empty_like(x)
        return torch.mul(torch.softmax(x, dim=-1), x, out=self.buffer)
