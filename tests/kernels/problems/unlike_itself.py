import torch
import torch.nn as nn


class Model(nn.Module):
    """Zeros in place of what is no number."""

    def forward(self, x):
        return torch.where(x != x, torch.zeros_like(x), x) * 2


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
