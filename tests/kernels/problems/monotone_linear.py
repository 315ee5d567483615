import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Monotone network layer: weights are kept non-negative by rectification."""

    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(out_features, features) / features)
        self.bias = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        return F.linear(x, torch.relu(self.weight), self.bias)


def get_inputs():
    return [torch.randn(4, 768)]


def get_init_inputs():
    return [768, 768]
