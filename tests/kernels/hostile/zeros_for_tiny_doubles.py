"""Densities that are nothing in single precision are said to be nothing in double."""

PROBLEM = "densities_in_double"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, centres):
        square = (x - centres[0]).square().sum(-1, keepdim=True)
        zeros = torch.zeros(len(x), len(centres), dtype=torch.float64)
        return -0.5 * square - 0.5 * x.shape[1] * 1.8378770664093453, zeros
