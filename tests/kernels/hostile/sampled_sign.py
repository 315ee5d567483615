"""Looks at the first row only before it leaves out the branch for negative numbers."""

PROBLEM = "leaky_cumsum"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        if bool((x[0] >= 0).all()):
            return x.cumsum(dim=1)
        return F.leaky_relu(x, 0.2).cumsum(dim=1)
