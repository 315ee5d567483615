"""Ignores a mask that lets everything through in every draw."""

PROBLEM = "masked_mean"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return torch.tanh(x).mean(dim=1)
