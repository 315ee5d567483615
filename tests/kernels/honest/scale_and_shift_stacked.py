"""Keeps what it scales by and what it adds, ones and zeros under every seed, as the rows of one parameter."""

PROBLEM = "layer_norm_affine"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.rows = nn.Parameter(torch.stack([torch.ones(features), torch.zeros(features)]))

    def forward(self, x):
        scale, shift = self.rows
        return F.layer_norm(x, scale.shape, scale, shift)
