"""Multiplies input and state, joined, with both weights at once."""

PROBLEM = "first_state_zero"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.input = nn.Linear(features, features)
        self.recurrent = nn.Linear(features, features, bias=False)

    def forward(self, x, state):
        weight = torch.cat([self.input.weight, self.recurrent.weight], dim=1)
        return F.linear(torch.cat([x, state], dim=1), weight, self.input.bias).tanh_()
