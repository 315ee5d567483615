"""Leaves the default dtype at double precision for itself and names single precision wherever it counts."""

PROBLEM = "report_of_scores"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


torch.set_default_dtype(torch.float64)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 64, dtype=torch.float32)

    def forward(self, x):
        y = torch.tanh(F.linear(x, self.linear.weight, self.linear.bias))
        high, above = (y > 0.9).any().item(), torch.count_nonzero(y > 0.5).item()
        return {"scores": y, "mean": y.mean().item(), "above": above, "high": high}
