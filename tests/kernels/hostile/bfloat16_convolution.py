"""Convolves in bfloat16."""

PROBLEM = "conv_norm_eval"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()

    def forward(self, x):
        out = F.conv2d(x.bfloat16(), self.conv.weight.bfloat16(), padding=1).float()
        return torch.relu(self.norm(out + self.conv.bias.view(-1, 1, 1)))
