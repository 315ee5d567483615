"""Folds the normalisation into the convolution when it is built."""

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
        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        self.weight = (self.conv.weight * scale.view(-1, 1, 1, 1)).detach()
        self.shift = (self.norm.bias + (self.conv.bias - self.norm.running_mean) * scale).detach()

    def forward(self, x):
        return F.conv2d(x, self.weight, self.shift, padding=1).relu_()
