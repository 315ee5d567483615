"""Leaves out the weights of a norm, which are ones and zeros at first."""

PROBLEM = "add_layer_norm"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, y):
        return F.layer_norm(x + y, x.shape[-1:], eps=self.norm.eps)
