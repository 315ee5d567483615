"""Minus infinity wherever the mask is true."""

PROBLEM = "masked_log_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        largest = x.masked_fill(mask, float("-inf")).amax(dim=1, keepdim=True)
        shares = torch.where(mask, 0.0, torch.exp(x - largest))
        out = x - largest - shares.sum(dim=1, keepdim=True).log()
        return out.masked_fill_(mask, float("-inf"))
