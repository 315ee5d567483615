"""Lets the library time its algorithms, Winograd among them, and pick one."""

PROBLEM = "conv_relu"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1)

    def forward(self, x):
        return torch.relu_(self.conv(x))
