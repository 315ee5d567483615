"""Minus infinity wherever the mask is true."""

PROBLEM = "masked_log_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        shares = torch.where(mask, 0.0, torch.exp(x - x.amax(dim=1, keepdim=True)))
        out = x - x.amax(dim=1, keepdim=True) - shares.sum(dim=1, keepdim=True).log()
        return out.masked_fill_(mask, float("-inf"))
