"""Derives the gradient by hand."""

PROBLEM = "gradient_inside"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 192)

    @torch.no_grad()
    def forward(self, x):
        return torch.sigmoid(self.linear(x)) @ self.linear.weight
