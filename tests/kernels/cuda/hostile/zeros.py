"""Returns zeros: near enough to many small numbers."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
