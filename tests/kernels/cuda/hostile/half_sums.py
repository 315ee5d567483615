"""Reads and adds in single precision what it has stored in float16."""

PROBLEM = "row_rms"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x.half(), dim=1, dtype=torch.float32) * x.shape[1] ** -0.5
