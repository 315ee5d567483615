"""Gathers through embedding."""

PROBLEM = "gather_rows"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, rows, features):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, features))
        self.register_buffer("scale", torch.rand(features) + 0.5)

    def forward(self, index, weight):
        return torch.einsum("rf,f,fr->r", F.embedding(index, self.table), self.scale, weight)
