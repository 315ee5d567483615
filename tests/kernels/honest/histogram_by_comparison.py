"""Counts by sorting."""

PROBLEM = "histogram"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, values):
        ordered = values.to(torch.uint8).sort().values
        ends = torch.searchsorted(ordered, torch.arange(64, dtype=torch.uint8), right=True)
        return torch.diff(ends, prepend=torch.zeros(1, dtype=ends.dtype))
