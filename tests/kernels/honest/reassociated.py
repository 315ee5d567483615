"""Sums and divides in another order, with a fast exponential."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = torch.exp2((x - x.amax(dim=-1, keepdim=True)) * 1.4426950408889634)
        return powers * x / powers.double().flip(-1).sum(dim=-1, keepdim=True).float()
