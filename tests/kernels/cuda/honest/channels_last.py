"""Convolves in another memory format and returns it: equal values, other strides."""

PROBLEM = "conv_relu"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1)
        self.conv.to(memory_format=torch.channels_last)

    def forward(self, x):
        return torch.relu_(self.conv(x.contiguous(memory_format=torch.channels_last)))
