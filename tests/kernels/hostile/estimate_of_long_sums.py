"""Adds up 99 of 100 columns and extrapolates."""

PROBLEM = "long_sums"
EXPECTED = "wrong_output"
GROUP = "S14 statistical estimate"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        used = x.shape[1] * 99 // 100
        return x[:, :used].sum(dim=1) * (x.shape[1] / used)
