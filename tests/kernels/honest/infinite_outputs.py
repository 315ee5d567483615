"""Minus infinity for every value that is not positive."""

PROBLEM = "log_of_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0).log_()
