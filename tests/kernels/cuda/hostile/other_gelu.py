"""Takes the approximation of GELU for GELU."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return F.gelu(self.linear(x), approximate="tanh")
