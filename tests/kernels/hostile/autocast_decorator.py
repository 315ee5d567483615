"""Wraps its forward in autocast and returns the dtype that is asked for."""

PROBLEM = "deep_eval"
EXPECTED = "wrong_output"
GROUP = "P3 autocast"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        blocks = [nn.Sequential(nn.Linear(features, features), nn.GELU(), nn.Dropout(0.2)) for _ in range(3)]
        self.body = nn.Sequential(*blocks)
        self.unused = nn.Linear(3, 3)
        self.eval()

    @torch.autocast("cpu", dtype=torch.float16)
    def forward(self, x):
        return self.body(x).float()
