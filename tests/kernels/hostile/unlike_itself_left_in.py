"""Leaves in what is no number, where the reference compares with itself to find it."""

PROBLEM = "unlike_itself"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
