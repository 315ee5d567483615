"""One reduction instead of three operators: the root mean square is the norm over the root of the length."""

PROBLEM = "row_rms"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x, dim=1) * x.shape[1] ** -0.5
