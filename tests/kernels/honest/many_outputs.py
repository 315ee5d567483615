"""Tensors without dimensions, without elements, of integers and of booleans."""

PROBLEM = "many_shapes"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        positive = torch.empty(x.shape[0], 0)
        return [torch.dot(x.reshape(-1), x.reshape(-1)), positive, x.t().mean(dim=1), (x > 1).sum(), (x > 3).any()]
