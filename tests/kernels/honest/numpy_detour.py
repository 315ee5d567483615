"""Computes in numpy."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        first, second = (x.numpy() @ layer.weight.detach().numpy().T for layer in (self.first, self.second))
        first, second = first + self.first.bias.detach().numpy(), second + self.second.bias.detach().numpy()
        return torch.from_numpy(np.tanh(first) + 1 / (1 + np.exp(-second)))
