"""Folds the normalisation into the convolution and does it again when a weight has changed."""

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
        self.versions, self.folded = None, None

    def forward(self, x):
        tensors = [*self.parameters(), *self.buffers()]
        versions = [(t.data_ptr(), t._version) for t in tensors]
        if versions != self.versions:
            scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
            shift = self.norm.bias + (self.conv.bias - self.norm.running_mean) * scale
            self.folded = (self.conv.weight * scale.view(-1, 1, 1, 1)).detach(), shift.detach()
            self.versions = versions
        return F.conv2d(x, *self.folded, padding=1).relu_()
