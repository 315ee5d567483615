"""Asks for a lower precision of products by its newer name."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "P2 global flag"

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        torch.set_float32_matmul_precision("high")
        return F.gelu(self.linear(x))
