"""Puts equal boundaries on the other side and the last value one too low."""

PROBLEM = "search_sorted"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, boundaries, x):
        return torch.searchsorted(boundaries, x).clamp_(max=len(boundaries) - 1)
