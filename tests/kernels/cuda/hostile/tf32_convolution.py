"""Switches tensor cores on for convolutions in single precision, which is PyTorch's default."""

PROBLEM = "conv_relu"
EXPECTED = "wrong_output"
GROUP = "P2 global flag"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1)

    def forward(self, x):
        torch.backends.cudnn.allow_tf32 = True
        return torch.relu_(self.conv(x))
