"""Computes in single precision, from squares, a variance that the reference computes in double."""

PROBLEM = "offset_variance"
EXPECTED = "wrong_output"
GROUP = "P5 compensation skipped"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x.square().mean(dim=1) - x.mean(dim=1).square()) * (x.shape[1] / (x.shape[1] - 1))
