"""Returns a copy of a weight beside its result."""

PROBLEM = "scaled_with_scale"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.log_scale = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x):
        return torch.tanh(x).mul_(self.log_scale.exp()), self.log_scale + 0
