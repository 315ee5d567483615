import torch
import torch.nn as nn


class Model(nn.Module):
    """Clips its input in place; one value in eleven needs it, since none beyond all draws are tried on a device."""

    def forward(self, x):
        return torch.sqrt(x.clamp_(0.0, 1.0) + 1e-6) * 2


def get_inputs():
    return [torch.rand(4096, 1024) * 1.1]


def get_init_inputs():
    return []
