"""Scales the product, not the weight, by the lengths that a parametrisation asks for."""

PROBLEM = "weight_normed"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(features, features))

    def forward(self, x):
        parts = self.linear.parametrizations.weight
        length, direction = parts.original0, parts.original1
        scale = (length / direction.norm(dim=1, keepdim=True)).t()
        return torch.tanh(torch.addcmul(self.linear.bias, x @ direction.t(), scale))
