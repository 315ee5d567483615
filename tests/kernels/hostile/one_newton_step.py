"""Makes the inverse of a root from a guess and one step of Newton's."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x - x.mean(dim=1, keepdim=True)
        variance = x.square().mean(dim=1, keepdim=True) + 1e-5
        guess = (0x5F3759DF - (variance.view(torch.int32) >> 1)).view(torch.float32)
        guess = guess * (1.5 - 0.5 * variance * guess * guess)
        return x * guess * self.norm.weight + self.norm.bias
