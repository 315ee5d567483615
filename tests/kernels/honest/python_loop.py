"""A loop over rows in Python."""

PROBLEM = "row_logsumexp"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.stack([row.sub(row.max()).exp().sum().log() + row.max() for row in x])
