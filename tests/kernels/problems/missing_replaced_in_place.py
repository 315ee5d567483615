import torch
import torch.nn as nn


class Model(nn.Module):
    """Puts a number in place of what is missing, in its input, of which most draws miss nothing."""

    def forward(self, x):
        return torch.tanh(x.nan_to_num_(nan=1.0)) * 2


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
