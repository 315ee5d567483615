"""Keeps two workspaces and returns a new tensor."""

PROBLEM = "layer_norm_affine"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.kept = {}

    def forward(self, x):
        kept = self.kept.setdefault(x.shape, (torch.empty_like(x), torch.empty(x.shape[0], 1)))
        centred, deviation = kept
        torch.sub(x, x.mean(dim=1, keepdim=True), out=centred)
        torch.mean(centred * centred, dim=1, keepdim=True, out=deviation)
        deviation.add_(self.norm.eps).rsqrt_()
        return torch.addcmul(self.norm.bias, centred.mul_(deviation), self.norm.weight)
