"""Returns its weights themselves where the reference returns a copy."""

PROBLEM = "scaled_with_scale"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.log_scale = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x):
        return torch.tanh(x) * torch.exp(self.log_scale), self.log_scale.detach()
