"""Returns a transposed view of what it computed."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (torch.softmax(x.t(), dim=0) * x.t()).t()
