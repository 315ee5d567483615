"""A softmax that overflows for inputs other than those it has seen."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = x.exp()
        return x.mul(powers).div_(powers.sum(dim=-1, keepdim=True))
