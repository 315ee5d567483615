"""Stops after two thirds of the iterations, which usually have converged."""

PROBLEM = "sinkhorn"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = x - torch.logsumexp(x, dim=1, keepdim=True)
            x = x - torch.logsumexp(x, dim=0, keepdim=True)
        return torch.exp(x)
