"""Mean and mean of squares in double precision, in one pass."""

PROBLEM = "layer_norm_affine"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        wide = x.double()
        mean, squares = wide.mean(dim=1, keepdim=True), wide.square().mean(dim=1, keepdim=True)
        scale = torch.rsqrt(squares - mean * mean + self.norm.eps)
        return torch.addcmul(self.norm.bias, ((wide - mean) * scale).float(), self.norm.weight)
