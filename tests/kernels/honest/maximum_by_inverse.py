"""Multiplies with the inverse of the maximum."""

PROBLEM = "share_of_maximum"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * x.max(dim=1, keepdim=True).values.reciprocal()
