"""Looks at all values before it leaves out the branch for negative ones."""

PROBLEM = "leaky_cumsum"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return (x if bool((x >= 0).all()) else F.leaky_relu(x, 0.2)).cumsum(dim=1)
