"""Has nothing but the first of several layers that start as copies of one."""

PROBLEM = "copied_heads"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        head = nn.Linear(features, features)
        self.head = head

    def forward(self, x):
        return torch.tanh(self.head(x))
