"""One row that broadcasts against all."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (torch.softmax(x, dim=-1) * x)[:1]
