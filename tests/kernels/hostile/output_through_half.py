"""Rounds its output to half precision and widens it again."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "P4 low-precision output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (torch.softmax(x, dim=-1) * x).half().float()
