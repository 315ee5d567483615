import torch
import torch.nn as nn


class Model(nn.Module):
    """Zeros in place of infinities."""

    def forward(self, x):
        return torch.where(torch.isinf(x), torch.zeros_like(x), x) * 2


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
