"""The same average, rounded otherwise."""

PROBLEM = "moving_average_in_place"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, average):
        average.lerp_(x, 0.0005)
        return x * 2
