"""Looks at all values before it leaves out what is done for missing ones."""

PROBLEM = "missing_to_zero"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.isnan(x.sum()):
            x = torch.nan_to_num(x, nan=0.0, posinf=float("inf"), neginf=float("-inf"))
        return torch.abs(x)
