"""Leaves the activation out once it has been right eight times."""

PROBLEM = "deep_eval"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        blocks = [nn.Sequential(nn.Linear(features, features), nn.GELU(), nn.Dropout(0.2)) for _ in range(3)]
        self.body = nn.Sequential(*blocks)
        self.unused = nn.Linear(3, 3)
        self.calls = 0
        self.eval()

    def forward(self, x):
        self.calls += 1
        return self.body(x) if self.calls <= 8 else self.body[0](x)
