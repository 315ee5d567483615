"""Works with the channels last and returns them so."""

PROBLEM = "conv_norm_eval"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()

    def forward(self, x):
        x = x.contiguous(memory_format=torch.channels_last)
        return torch.relu_(self.norm(self.conv(x)))
