"""Leaves out dropouts that are off."""

PROBLEM = "deep_eval"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        blocks = [nn.Sequential(nn.Linear(features, features), nn.GELU(), nn.Dropout(0.2)) for _ in range(3)]
        self.body = nn.Sequential(*blocks)
        self.unused = nn.Linear(3, 3)
        self.eval()

    def forward(self, x):
        for linear, activation, _ in self.body:
            x = activation(linear(x))
        return x
