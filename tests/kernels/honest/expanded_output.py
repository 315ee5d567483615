"""Returns a view with a stride of nought where the reference repeats."""

PROBLEM = "repeated_mean"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mean(dim=1, keepdim=True).expand_as(x)
