"""Hangs in C with the interpreter"s lock held."""

GROUP = "E4 hang"
PROBLEM = "row_softmax"
EXPECTED = "timeout"

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.PyDLL(None).sleep(3600)
        return torch.softmax(x, dim=-1) * x
