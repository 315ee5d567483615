"""The right tensors in the wrong order."""

PROBLEM = "row_statistics"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.std(dim=1), x.mean(dim=1)
