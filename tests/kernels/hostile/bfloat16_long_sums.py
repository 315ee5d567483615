"""Adds up numbers that were rounded to bfloat16, where errors average out."""

PROBLEM = "long_sums"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.bfloat16().float().sum(dim=1)
