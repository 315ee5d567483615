"""Adds in double precision: nearer to the truth than the reference."""

PROBLEM = "row_rms"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.square().mean(dim=1, dtype=torch.float64).sqrt().float()
