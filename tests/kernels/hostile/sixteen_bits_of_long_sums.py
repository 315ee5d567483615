"""Adds up numbers that were cut to sixteen bits, where errors average out."""

PROBLEM = "long_sums"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 65536).round().to(torch.int32).sum(dim=1).float() / 65536
