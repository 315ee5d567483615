"""Returns whatever stands in fresh memory."""

PROBLEM = "attention"
EXPECTED = ("wrong_output", "cheated")
GROUP = "S16 uninitialised, racy or out of bounds"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.empty_like(q)
