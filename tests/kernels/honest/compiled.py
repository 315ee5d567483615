"""Compiles its forward."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "graph"

import torch
import torch.nn as nn


def body(x):
    return torch.softmax(x, dim=-1) * x


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.compile(body)

    def forward(self, x):
        return self.body(x)
