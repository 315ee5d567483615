"""Uses a name that does not exist."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import torch
import torch.nn as nn


class ModelNew(nn.Modul):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
