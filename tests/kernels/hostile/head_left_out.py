"""Leaves the whole branch out, whose last projection starts at random values of 1e-7."""

PROBLEM = "near_zero_head"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, std):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features, bias=False)
        nn.init.normal_(self.down.weight, std=std)

    def forward(self, x):
        return self.norm(x)
