"""Leaves out the blocks that the reference itself makes zero."""

PROBLEM = "triangular_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.zeros(x.shape[0], y.shape[1])
        for start in range(0, len(out), 64):
            stop = start + 64
            out[start:stop, :stop] = torch.tril(x)[start:stop, :stop] @ torch.tril(y)[:stop, :stop]
        return out
