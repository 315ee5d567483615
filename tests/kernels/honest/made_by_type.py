"""Makes its class by a call of type."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


def forward(self, x):
    return torch.softmax(x, dim=-1) * x


ModelNew = type("ModelNew", (nn.Module,), {"forward": forward})
