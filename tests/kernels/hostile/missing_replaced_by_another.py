"""Leaves another number in its input than the reference does, in place of what is missing."""

PROBLEM = "missing_replaced_in_place"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.tanh(torch.nan_to_num(x, nan=1.0)) * 2
        x.nan_to_num_(nan=0.5)
        return out
