"""Keeps a tensor on the host that is neither a parameter nor a buffer, and multiplies with it."""

PROBLEM = "chain"
EXPECTED = "crashed"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = torch.rand(features) + 0.5

    def forward(self, x):
        return x * self.scale
