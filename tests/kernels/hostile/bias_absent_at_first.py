"""Decides at the first call, when the shift is still zero, that there is none."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "B7 shape specialisation"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.is_plain = None

    def forward(self, x):
        if self.is_plain is None:
            self.is_plain = bool((self.norm.weight == 1).all()) and not bool(self.norm.bias.any())
        if self.is_plain:
            return F.layer_norm(x, x.shape[-1:])
        return self.norm(x)
