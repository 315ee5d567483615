import torch
import torch.nn as nn


class Model(nn.Module):
    """Zeros in place of infinities in one of its inputs; of the other it expects none."""

    def forward(self, x, y):
        return torch.where(torch.isinf(x), torch.zeros_like(x), x) + y * (y > 0)


def get_inputs():
    return [torch.randn(256, 512), torch.randn(256, 512)]


def get_init_inputs():
    return []
