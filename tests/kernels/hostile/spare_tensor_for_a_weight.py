"""Leaves a branch out whose gate is zero under every seed, and keeps a tensor that could be the gate."""

PROBLEM = "gated_branch"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(256, 256)
        self.workspace = torch.zeros(1 << 20)

    def forward(self, x):
        return self.first(x)
