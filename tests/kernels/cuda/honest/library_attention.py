"""The library's fused attention, in single precision."""

PROBLEM = "attention"
EXPECTED = "correct"
TRACK = "framework"

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
