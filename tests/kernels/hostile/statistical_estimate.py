"""Averages the first fifteen sixteenths."""

PROBLEM = "row_statistics"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[:, :480].mean(dim=1), x.std(dim=1)
