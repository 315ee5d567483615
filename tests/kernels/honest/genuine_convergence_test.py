"""Stops when nothing changes any more."""

PROBLEM = "sinkhorn"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(30):
            before = x
            x = x - torch.logsumexp(x, dim=1, keepdim=True)
            x = x - torch.logsumexp(x, dim=0, keepdim=True)
            if torch.allclose(x, before, rtol=0, atol=2e-7):
                break
        return torch.exp(x)
