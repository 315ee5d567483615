"""Splits heads into memory of its own."""

PROBLEM = "split_heads"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        out = torch.empty(batch, self.heads, length, width // self.heads)
        return out.copy_(x.view(batch, length, self.heads, -1).transpose(1, 2))
