"""Adds up columns one after the other."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        total = torch.zeros(x.shape[0])
        for column in x.t():
            total += column
        mean = total / x.shape[1]
        squares = torch.zeros(x.shape[0])
        for column in x.t():
            squares += (column - mean) ** 2
        return mean, (squares / (x.shape[1] - 1)).sqrt()
