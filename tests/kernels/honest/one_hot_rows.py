"""Picks rows where the problem multiplies with one-hot rows."""

PROBLEM = "one_hot_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, table):
        return table[x.argmax(dim=1)]
