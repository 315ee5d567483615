"""Works in place on its own temporaries, never on its inputs."""

PROBLEM = "chain"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))

    @torch.no_grad()
    def forward(self, x):
        y = torch.addcmul(self.shift, x, self.scale)
        return torch.nn.functional.silu(y, inplace=True).tanh_().add_(x)
