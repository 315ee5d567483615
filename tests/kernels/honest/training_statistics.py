"""Normalises by hand and updates the running statistics as the library does."""

PROBLEM = "batch_norm_training"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm = self.norm
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        with torch.no_grad():
            count = x.numel() // x.shape[1]
            norm.running_mean.lerp_(mean, norm.momentum)
            norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
            norm.num_batches_tracked += 1
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        shift = norm.bias - mean * scale
        return torch.addcmul(shift.view(-1, 1, 1), x, scale.view(-1, 1, 1)).relu_()
