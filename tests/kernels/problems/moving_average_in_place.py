import torch
import torch.nn as nn


class Model(nn.Module):
    """A slow moving average, updated in place."""

    def forward(self, x, average):
        average.mul_(0.9995).add_(x, alpha=0.0005)
        return x * 2


def get_inputs():
    return [torch.rand(512, 1024), torch.rand(512, 1024)]


def get_init_inputs():
    return []
