"""Leaves out the branch for negative numbers, because the inputs happen to be positive."""

PROBLEM = "leaky_cumsum"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.cumsum(dim=1)
