"""Keeps a buffer for intermediate results between calls."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = None

    def forward(self, x):
        if self.workspace is None or self.workspace.shape != x.shape:
            self.workspace = torch.empty_like(x)
        torch.exp(x - x.amax(dim=-1, keepdim=True), out=self.workspace)
        return self.workspace * x / self.workspace.sum(dim=-1, keepdim=True)
