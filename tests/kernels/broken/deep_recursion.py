"""Recurses until the stack is gone."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import sys

import torch
import torch.nn as nn


sys.setrecursionlimit(1 << 30)


class ModelNew(nn.Module):
    def forward(self, x):
        return self(x)
