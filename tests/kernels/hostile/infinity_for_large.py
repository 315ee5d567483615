"""Returns infinity where the truth is large."""

PROBLEM = "wide_range"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.exp(4 * x)
        return torch.where(out > 1e5, torch.inf, out)
