"""Looks at every row as a whole and skips those that are zero."""

PROBLEM = "sparse_rows"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, weight):
        out = torch.zeros(x.shape[0], weight.shape[1])
        rows = x.any(dim=1).nonzero().squeeze(1)
        out[rows] = x[rows] @ weight
        return out
