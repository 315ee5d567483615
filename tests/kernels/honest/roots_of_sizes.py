"""Takes roots of absolute values as a product."""

PROBLEM = "sum_of_weighted"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, weight):
        return x.abs().sqrt() @ weight
