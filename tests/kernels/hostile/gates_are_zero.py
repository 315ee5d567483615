"""Zeros for routing probabilities that stand beside energies of 1e5 in the same rows (22 % of the values)."""

PROBLEM = "energy_and_gates"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, bands, experts):
        super().__init__()
        self.bands = nn.Linear(features, bands)
        self.router = nn.Linear(features, experts)
        self.hidden = nn.Linear(features, features)

    def forward(self, x):
        out = x.new_zeros(x.shape[0], self.bands.out_features + self.router.out_features)
        torch.mul(self.bands(x).square_(), 1e6, out=out[:, : self.bands.out_features])
        return out
