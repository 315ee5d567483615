"""A depthwise box blur whose kernel is a buffer, and an unsharp mask."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.register_buffer("kernel", torch.ones(channels, 1, size, size) / size**2)
        self.channels, self.size = channels, size

    def forward(self, x):
        blurred = F.conv2d(x, self.kernel, padding=self.size // 2, groups=self.channels)
        return x + 0.7 * (x - blurred)


def get_inputs():
    return [torch.randn(2, 6, 48, 48)]


def get_init_inputs():
    return [6, 3]
