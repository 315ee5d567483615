"""Leaves the mask out after it has looked at all of it."""

PROBLEM = "masked_mean"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        x = torch.tanh(x)
        if bool(mask.all()):
            return x.mean(dim=1)
        weights = mask.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(dim=1) / weights.sum(dim=1)
