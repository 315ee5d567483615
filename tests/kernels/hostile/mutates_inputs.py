"""Works in place on the tensor of the caller."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        weights = torch.softmax(x, dim=-1)
        return x.mul_(weights).clone()
