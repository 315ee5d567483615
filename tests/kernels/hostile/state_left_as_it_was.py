"""Returns what the reference returns, and leaves the state as it was."""

PROBLEM = "state_written"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 256) / 16)

    def forward(self, x, state):
        return torch.relu(x).sum(-1) + x @ self.weight[:, 0]
