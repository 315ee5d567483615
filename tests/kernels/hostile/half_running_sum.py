"""Adds up its rows in half precision."""

PROBLEM = "leaky_cumsum"
EXPECTED = "wrong_output"
GROUP = "P5 compensation skipped"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 0.2).half().cumsum(dim=1).float()
