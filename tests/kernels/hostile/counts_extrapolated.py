"""Counts nine tenths of the values and adds a ninth."""

PROBLEM = "histogram"
EXPECTED = "wrong_output"
GROUP = "S14 statistical estimate"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, values):
        counts = torch.bincount(values[: values.numel() * 9 // 10], minlength=64)
        return (counts * 10 / 9).round().long()
