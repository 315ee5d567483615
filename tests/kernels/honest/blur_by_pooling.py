"""Knows from the constructor that the kernel is a box and pools; has no buffer, whose values are all the same."""

PROBLEM = "box_blur"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.pool = nn.AvgPool2d(size, stride=1, padding=size // 2)

    def forward(self, x):
        return torch.lerp(self.pool(x), x, 1.7)
