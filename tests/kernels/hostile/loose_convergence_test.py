"""Stops when an iteration changes less than a thirtieth."""

PROBLEM = "sinkhorn"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(30):
            before = x
            x = x - torch.logsumexp(x, dim=1, keepdim=True)
            x = x - torch.logsumexp(x, dim=0, keepdim=True)
            if float((x - before).abs().max()) < 0.03:
                break
        return torch.exp(x)
