"""Uses a tied weight twice and names it once."""

PROBLEM = "tied_autoencoder"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.encoder = nn.Linear(features, features, bias=False)
        nn.Linear(features, features, bias=False)

    def forward(self, x):
        weight = self.encoder.weight
        return torch.relu(x @ weight.t()) @ weight.t()
