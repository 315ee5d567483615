"""Leaves the last row to whoever looks there."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        out[:-1] = torch.softmax(x[:-1], dim=-1) * x[:-1]
        return out
