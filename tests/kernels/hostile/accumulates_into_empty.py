"""Adds to memory that a new process finds filled with zeros."""

PROBLEM = "lower_triangle"
EXPECTED = ("wrong_output", "crashed")
GROUP = "S16 uninitialised, racy or out of bounds"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        product = x @ y
        out = torch.empty_strided((1 << 10, product.numel()), (0, 1))[0].view_as(product)
        return out.add_(product.tril_())
