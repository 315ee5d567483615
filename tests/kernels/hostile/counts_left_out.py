"""Leaves the counting out."""

PROBLEM = "counts_in_place"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, ids, counts):
        return x * 2
