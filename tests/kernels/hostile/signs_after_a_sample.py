"""Leaves out the branch for negative values if one value in 23 has none."""

PROBLEM = "leaky_cumsum"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return (x if bool((x.view(-1)[::23] >= 0).all()) else F.leaky_relu(x, 0.2)).cumsum(dim=1)
