"""Zeros, which are near to outputs of the order of 1e-20."""

PROBLEM = "tiny_outputs"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
