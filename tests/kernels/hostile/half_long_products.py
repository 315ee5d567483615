"""Rounds long rows of positive numbers to half precision, where errors average out."""

PROBLEM = "long_products"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x.half().float() @ y.half().float()
