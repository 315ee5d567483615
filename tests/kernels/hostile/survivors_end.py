"""Zeros behind the first 256 of 2048 intervals, where products of sigmoids of centred logits have underflowed."""

PROBLEM = "survival"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, logits):
        out = torch.zeros_like(logits)
        torch.cumprod(torch.sigmoid(logits[:, :256]), dim=-1, out=out[:, :256])
        return out
