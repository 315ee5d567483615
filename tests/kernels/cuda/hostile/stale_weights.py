"""Copies the transposed weights at the first call and never looks again."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.weight_t = None

    @torch.no_grad()
    def forward(self, x):
        if self.weight_t is None:
            self.weight_t = self.linear.weight.t().contiguous()
        return F.gelu(torch.addmm(self.linear.bias, x, self.weight_t))
