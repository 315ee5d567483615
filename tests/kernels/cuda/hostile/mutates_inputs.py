"""Works in place on the caller's tensor."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mul_(torch.softmax(x, dim=-1)).clone()
