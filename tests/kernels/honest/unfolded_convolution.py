"""Unfolds its input and multiplies, and leaves the channels last."""

PROBLEM = "conv_norm_eval"
EXPECTED = "correct"

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
        columns = F.unfold(x, 3, padding=1).transpose(1, 2)
        out = F.linear(columns, self.conv.weight.flatten(1), self.conv.bias)
        out = out.view(x.shape[0], *x.shape[2:], -1).permute(0, 3, 1, 2)
        return torch.relu(self.norm(out))
