import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, taps):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(4, 1, taps) / taps**0.5)

    def forward(self, x):
        return F.conv1d(x, self.filter, padding=127)


def get_inputs():
    return [torch.randn(8, 1, 1024)]


def get_init_inputs():
    return [255]
