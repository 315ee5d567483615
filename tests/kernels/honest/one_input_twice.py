"""Relies on getting one tensor twice, as the reference does."""

PROBLEM = "compared_with_itself"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        if x is not y:
            raise ValueError("these are two tensors")
        return torch.softmax(x @ x.t() / 16, dim=1) @ x
