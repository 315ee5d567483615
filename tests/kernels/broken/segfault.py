"""Writes to address zero."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.memset(0, 1, 1)
        return x
