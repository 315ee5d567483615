"""Returns half precision."""

PROBLEM = "conv_norm_eval"
EXPECTED = "wrong_output"
GROUP = "P4 low-precision output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))).half()
