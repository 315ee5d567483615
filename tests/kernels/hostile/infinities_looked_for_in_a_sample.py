"""Puts zeros in place of infinities if one value in 23 is one."""

PROBLEM = "without_infinities"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.isinf(x.view(-1)[::23]).any():
            x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        return x * 2
