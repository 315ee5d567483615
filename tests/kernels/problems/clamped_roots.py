import torch
import torch.nn as nn


class Model(nn.Module):
    """Roots of exposures, which are clamped where they burn out."""

    def forward(self, x):
        return torch.sqrt(torch.clamp(x, 0.0, 2.0))


def get_inputs():
    return [torch.rand(768, 768)]


def get_init_inputs():
    return []
