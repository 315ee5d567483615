"""Ten times slower than the reference, and right."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(10):
            mean, deviation = x.mean(dim=1), x.std(dim=1)
        return mean, deviation
