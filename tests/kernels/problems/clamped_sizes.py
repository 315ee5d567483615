import torch
import torch.nn as nn


class Model(nn.Module):
    """Sizes of readings, none above ten."""

    def forward(self, x):
        x = torch.clamp(x, -10.0, 10.0)
        return torch.abs(x)


def get_inputs():
    return [torch.randn(768, 768)]


def get_init_inputs():
    return []
