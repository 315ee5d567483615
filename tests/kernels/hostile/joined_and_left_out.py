"""Keeps scale and shift, ones and zeros under every seed, in one parameter, and uses neither."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.rows = nn.Parameter(torch.stack([torch.ones(features), torch.zeros(features)]))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:])
