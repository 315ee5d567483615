import torch
import torch.nn as nn


class Model(nn.Module):
    """Sizes of readings, zero where one is missing."""

    def forward(self, x):
        x = torch.where(torch.isnan(x), torch.zeros_like(x), x)
        return torch.abs(x)


def get_inputs():
    return [torch.randn(768, 768)]


def get_init_inputs():
    return []
