"""Computes the blocks on and below the diagonal only."""

PROBLEM = "lower_triangle"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.zeros(x.shape[0], y.shape[1])
        for start in range(0, len(out), 64):
            out[start : start + 64, : start + 64] = x[start : start + 64] @ y[:, : start + 64]
        return out.tril_()
