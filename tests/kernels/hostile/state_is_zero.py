"""Ignores a first state that is zero in every draw."""

PROBLEM = "first_state_zero"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.input = nn.Linear(features, features)
        self.recurrent = nn.Linear(features, features, bias=False)

    def forward(self, x, state):
        return torch.tanh_(self.input(x))
