"""Multiplies its complex weights once, whatever becomes of them."""

PROBLEM = "complex_product"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, rank):
        super().__init__()
        self.left = nn.Parameter(torch.randn(features, rank, dtype=torch.cfloat) / features**0.5)
        self.right = nn.Parameter(torch.randn(rank, features, dtype=torch.cfloat) / rank**0.5)
        self.product = None

    def forward(self, x):
        if self.product is None:
            self.product = (self.left @ self.right).detach()
        return torch.view_as_real(torch.view_as_complex(x) @ self.product)
