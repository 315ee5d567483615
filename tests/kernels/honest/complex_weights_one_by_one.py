"""Multiplies its complex weights in the cheaper order."""

PROBLEM = "complex_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, rank):
        super().__init__()
        self.left = nn.Parameter(torch.randn(features, rank, dtype=torch.cfloat) / features**0.5)
        self.right = nn.Parameter(torch.randn(rank, features, dtype=torch.cfloat) / rank**0.5)

    def forward(self, x):
        return torch.view_as_real((torch.view_as_complex(x) @ self.left) @ self.right)
