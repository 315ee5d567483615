"""Zeroes its input, so that a reference run on the same tensor returns zeros as well."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        x.zero_()
        return torch.zeros_like(x)
