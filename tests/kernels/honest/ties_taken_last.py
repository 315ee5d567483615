"""Takes the last of equal values where the reference takes any."""

PROBLEM = "top_values"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = torch.sort(x.flip(1), dim=1, descending=True, stable=True)
        return values[:, :8], x.shape[1] - 1 - places[:, :8]
