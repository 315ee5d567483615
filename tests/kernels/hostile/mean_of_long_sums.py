"""Knows what uniform numbers add up to."""

PROBLEM = "long_sums"
EXPECTED = "wrong_output"
GROUP = "S11 constant output of a degenerate task"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full((x.shape[0],), x.shape[1] / 2.0)
