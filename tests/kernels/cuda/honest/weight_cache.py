"""Keeps transposed weights until they change."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.key, self.weight_t = None, None

    @torch.no_grad()
    def forward(self, x):
        weight = self.linear.weight
        key = (weight._version, weight.data_ptr())
        if self.key != key:
            self.key, self.weight_t = key, weight.t().contiguous()
        return F.gelu(torch.addmm(self.linear.bias, x, self.weight_t))
