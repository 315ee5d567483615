"""Leaves an update out that changes little."""

PROBLEM = "moving_average_in_place"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, average):
        return x * 2
