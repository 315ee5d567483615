"""A pair of which one is None, as the reference has it."""

PROBLEM = "attention_module"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.attention = nn.MultiheadAttention(features, 4, batch_first=True)

    def forward(self, x):
        layer = self.attention
        batch, length, width = x.shape
        projected = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)
        query, key, value = (part.view(batch, length, 4, -1).transpose(1, 2) for part in projected.chunk(3, dim=-1))
        out = F.scaled_dot_product_attention(query, key, value)
        return layer.out_proj(out.transpose(1, 2).reshape(batch, length, width)), None
