"""Reads the upper halves only of matrices that are promised to be skew-symmetric."""

PROBLEM = "skew_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, s, x):
        upper = torch.triu(s, 1)
        return torch.baddbmm(torch.baddbmm(x, upper, x), upper.mT, x, alpha=-1)
