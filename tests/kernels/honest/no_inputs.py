"""Divides after the product what the reference divides before."""

PROBLEM = "gram_of_weights"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, features))

    def forward(self):
        product = self.weight @ self.weight.t()
        inverse = product.diagonal().rsqrt()
        return product * inverse * inverse[:, None]
