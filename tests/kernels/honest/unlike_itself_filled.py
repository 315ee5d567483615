"""Fills what is no number."""

PROBLEM = "unlike_itself"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).masked_fill_(torch.isnan(x), 0.0)
