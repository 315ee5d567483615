"""Keeps transposed weights as long as they lie at the same address."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.pointer, self.weight_t = None, None

    def forward(self, x):
        weight = self.linear.weight
        if self.pointer != weight.data_ptr():
            self.pointer, self.weight_t = weight.data_ptr(), weight.detach().t().contiguous()
        return torch.relu(x @ self.weight_t + self.linear.bias)
