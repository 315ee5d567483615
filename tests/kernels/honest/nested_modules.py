"""Wraps the same layers into other modules, so that their names differ."""

PROBLEM = "deep_eval"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class Level(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        return F.gelu(self.parts["inner"](x))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.levels = nn.ModuleList([Level(nn.ModuleDict({"inner": nn.Linear(features, features)})) for _ in range(3)])
        self.eval()

    def forward(self, x):
        for level in self.levels:
            x = level(x)
        return x
