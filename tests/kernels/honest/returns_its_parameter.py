"""Returns a parameter as it is, as the reference does."""

PROBLEM = "linear_and_parameter"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        return F.linear(x, self.weight).relu_(), self.weight
