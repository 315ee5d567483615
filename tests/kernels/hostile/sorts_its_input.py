"""Changes one element of its input and puts nothing back."""

PROBLEM = "row_logsumexp"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.logsumexp(x, dim=1)
        x[0, 0] += 1
        return out
