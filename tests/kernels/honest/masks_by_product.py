"""Multiplies with a triangle of ones and zeros that it keeps as a constant."""

PROBLEM = "lower_triangle"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ones", torch.ones(512, 512).tril(), persistent=False)

    def forward(self, x, y):
        return (x @ y).mul_(self.ones)
