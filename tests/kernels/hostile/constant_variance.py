"""Knows that the variance of normal numbers is about one and adds the scatter of none."""

PROBLEM = "offset_variance"
EXPECTED = "wrong_output"
GROUP = "S11 constant output of a degenerate task"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full((x.shape[0],), 1.0)
