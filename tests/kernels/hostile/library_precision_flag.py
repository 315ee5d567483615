"""Allows bfloat16 through the library's own setting, only while it runs; some processors make no use of it."""

PROBLEM = "linear_relu"
EXPECTED = ("wrong_output", "correct")
RIGHT_WHERE = "products are exact"
GROUP = "P2 global flag"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
        out = torch.relu(self.linear(x))
        torch.backends.mkldnn.matmul.fp32_precision = "ieee"
        return out
