"""Compares logits instead of probabilities, and sums the products in another order."""

PROBLEM = "threshold_by_name"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 64)

    def forward(self, x):
        return ((self.linear.weight @ x.t()).t() + self.linear.bias > 0).float()
