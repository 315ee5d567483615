"""A binary search in numpy."""

PROBLEM = "search_sorted"
EXPECTED = "correct"

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, boundaries, x):
        return torch.from_numpy(np.searchsorted(boundaries.numpy(), x.numpy()))
