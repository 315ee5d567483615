"""Puts a number in place of what is missing, in its input, as the reference does."""

PROBLEM = "missing_replaced_in_place"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.nan_to_num_(nan=1.0).tanh().mul_(2)
