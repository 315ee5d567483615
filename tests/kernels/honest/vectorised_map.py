"""Maps a function of one row over all of them."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: torch.softmax(row, 0) * row)(x)
