"""Keeps a random table outside of its state and doubles it once."""

PROBLEM = "random_features"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.projection = torch.randn(features, 192)
        self.register_buffer("phase", 6.28 * torch.rand(192))
        self.projection_t = self.projection.t().contiguous()

    def forward(self, x):
        return F.linear(x, self.projection_t, self.phase).cos_()
