"""24 of 60 iterations and no test of convergence: enough for weights as initialised (radius 0.5), not for trained
ones near 1.
"""

PROBLEM = "deep_equilibrium"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, iterations):
        super().__init__()
        self.inject = nn.Linear(features, features)
        self.weight = nn.Parameter(torch.randn(features, features) * 0.5 / features**0.5)

    def forward(self, x):
        u = self.inject(x)
        z = torch.tanh(u)
        for _ in range(23):
            z = torch.tanh_(torch.addmm(u, z, self.weight))
        return z
