"""Multiplies by what is conjugate to numbers of length 1 instead of dividing by them."""

PROBLEM = "turned_back"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, z, phases):
        return torch.view_as_real(z * phases.conj())
