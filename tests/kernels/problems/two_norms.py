"""Norm, projection, norm, as in a sandwich-norm block."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm_in = nn.LayerNorm(width)
        self.proj = nn.Linear(width, width)
        self.norm_out = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.norm_out(self.proj(self.norm_in(x)))


def get_inputs():
    return [torch.randn(128, 192)]


def get_init_inputs():
    return [192]
