"""Draws random numbers at every call and puts the generator back."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.random.fork_rng():
            order = torch.randperm(x.shape[1])
        x = x[:, order]
        return x.mean(dim=1), x.std(dim=1)
