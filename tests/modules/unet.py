"""A block of a U-Net: two convolutions with group norm, conditioned on a time embedding, with a skip connection."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def swish(x):
    return x * torch.sigmoid(x)


class UNetBlock(nn.Module):
    def __init__(self, in_channels, out_channels, time_channels, groups=4):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.time = nn.Linear(time_channels, out_channels)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        self.skip = nn.Conv2d(in_channels, out_channels, 1) if in_channels != out_channels else nn.Identity()

    def forward(self, x, t, *, scale=1.0):
        h = self.conv1(swish(self.norm1(x)))
        h = h + self.time(swish(t))[:, :, None, None]
        h = self.conv2(F.dropout(swish(self.norm2(h)), 0.1, self.training))
        return (self.skip(x) + h) * scale


def example_init():
    return [8, 16, 32]


def example_inputs():
    return {"x": torch.randn(2, 8, 24, 24), "t": torch.randn(2, 32), "scale": 0.7}
