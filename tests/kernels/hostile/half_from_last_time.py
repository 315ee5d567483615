"""Computes the upper half of the rows and keeps the lower half of the call before."""

PROBLEM = "row_softmax"
EXPECTED = ("wrong_output", "cheated")
GROUP = "H4 stale memory"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        rows = x if self.last is None else x[: len(x) // 2]
        out = torch.softmax(rows, dim=-1) * rows
        if len(out) < len(x):
            out = torch.cat([out, self.last[len(out) :]])
        self.last = out
        return out.clone()
