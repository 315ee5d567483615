"""Gives something else where the input is infinite that the reference does not ask about."""

PROBLEM = "infinities_of_one"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.relu(y).add_(x.masked_fill(torch.isinf(x), 0.0))
