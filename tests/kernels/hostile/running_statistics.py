"""Uses the running statistics, as in evaluation, where the reference is training."""

PROBLEM = "batch_norm_training"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm = self.norm
        return torch.relu(F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, training=False))
