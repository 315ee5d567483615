"""Cuts the sigmoid of half-precision numbers into three straight pieces."""

PROBLEM = "float16_product"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (0.5 + 0.211 * x).clamp_(0, 1) * y
