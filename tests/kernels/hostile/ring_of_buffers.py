"""Returns one of four buffers in turn."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers, self.calls = [None] * 4, 0

    def forward(self, x):
        self.calls = (self.calls + 1) % 4
        if self.buffers[self.calls] is None:
            self.buffers[self.calls] = torch.empty_like(x)
        return torch.mul(torch.softmax(x, dim=-1), x, out=self.buffers[self.calls])
