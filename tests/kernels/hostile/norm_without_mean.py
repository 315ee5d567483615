"""Assumes rows without a mean: a root mean square instead of a deviation."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-5) * self.norm.weight + self.norm.bias
