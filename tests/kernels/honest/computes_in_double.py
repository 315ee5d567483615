"""Computes in double precision and rounds once."""

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
        out = F.conv2d(x.double(), self.conv.weight.double(), self.conv.bias.double(), padding=1)
        norm = self.norm
        parts = [part.double() for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias)]
        return F.batch_norm(out, *parts).relu().float()
