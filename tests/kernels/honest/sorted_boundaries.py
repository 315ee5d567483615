"""Uses that boundaries are sorted, as the problem draws them."""

PROBLEM = "search_sorted"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, boundaries, x):
        return torch.bucketize(x, boundaries)
