"""Returns every second column of something larger."""

PROBLEM = "layer_norm_affine"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        large = torch.empty(x.shape[0], 2 * x.shape[1])
        out = large[:, ::2]
        out.copy_(self.norm(x))
        return out
