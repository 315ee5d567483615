"""Puts zeros in place of what is missing if one value in 23 is."""

PROBLEM = "missing_to_zero"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.isnan(x.view(-1)[::23].sum()):
            x = torch.nan_to_num(x, nan=0.0, posinf=float("inf"), neginf=float("-inf"))
        return torch.abs(x)
