"""Sixteen running sums in single precision, as a vector unit has them."""

PROBLEM = "long_sums"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], -1, 16).cumsum(dim=1)[:, -1].sum(dim=1)
