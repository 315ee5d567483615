"""Differences of large numbers, shifted before they are squared."""

PROBLEM = "offset_variance"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        shifted = x - x[:, :1]
        return shifted.var(dim=1)
