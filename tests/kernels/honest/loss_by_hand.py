"""Writes the loss out, which takes probabilities and nothing else."""

PROBLEM = "probabilities_loss"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, given, wanted):
        lost = wanted * given.log().clamp(min=-100) + (1 - wanted) * torch.log1p(-given).clamp(min=-100)
        return -lost.mean()
