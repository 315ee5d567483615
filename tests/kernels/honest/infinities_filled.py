"""Fills infinities with zeros."""

PROBLEM = "without_infinities"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).masked_fill_(x.abs() == float("inf"), 0.0)
