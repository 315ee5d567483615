"""Estimates a variance from every second column."""

PROBLEM = "offset_variance"
EXPECTED = "wrong_output"
GROUP = "S14 statistical estimate"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[:, ::2].double().var(dim=1).float()
