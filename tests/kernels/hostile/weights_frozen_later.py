"""Follows its weights for ten calls and then never looks at them again."""

PROBLEM = "conv_norm_eval"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()
        self.calls, self.folded = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 10 or self.folded is None:
            scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
            shift = self.norm.bias + (self.conv.bias - self.norm.running_mean) * scale
            self.folded = (self.conv.weight * scale.view(-1, 1, 1, 1)).detach(), shift.detach()
        return F.conv2d(x, *self.folded, padding=1).relu_()
