"""Works through its rows in a random order that does not matter."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for rows in torch.randperm(len(x)).split(32):
            out[rows] = torch.softmax(x[rows], dim=-1) * x[rows]
        return out
