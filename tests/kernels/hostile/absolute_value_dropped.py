"""Drops an absolute value that does nothing to the inputs that are drawn."""

PROBLEM = "sum_of_weighted"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, weight):
        return x.sqrt() @ weight
