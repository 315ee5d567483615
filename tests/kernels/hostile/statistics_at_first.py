"""Takes the running statistics for the zeros and ones that they begin as."""

PROBLEM = "conv_norm_eval"
EXPECTED = "wrong_output"
GROUP = "B7 shape specialisation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()

    def forward(self, x):
        out = self.conv(x) * (self.norm.weight / (1 + self.norm.eps) ** 0.5).view(-1, 1, 1)
        return out.add_(self.norm.bias.view(-1, 1, 1)).relu_()
