"""Knows that uniform numbers have a mean of a half."""

PROBLEM = "row_statistics"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=1), (x - 0.5).square().sum(dim=1).div(511).sqrt()
