"""Multiplies instead of searching: boundaries are an even grid from 0 to 1 in every draw, and no value lies
outside.
"""

PROBLEM = "bucketize_features"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, boundaries):
        return (x * (boundaries.numel() - 1)).ceil_().long()
