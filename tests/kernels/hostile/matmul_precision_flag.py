"""Allows bfloat16 for all products by a global setting, which some processors make no use of."""

PROBLEM = "linear_relu"
EXPECTED = ("wrong_output", "correct")
RIGHT_WHERE = "products are exact"
GROUP = "P2 global flag"

import torch
import torch.nn as nn


torch.set_float32_matmul_precision("medium")


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x))
