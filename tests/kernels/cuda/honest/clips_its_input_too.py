"""Clips its input in place, as the reference does where values need it."""

PROBLEM = "clipped_in_place"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp_(0.0, 1.0).add(1e-6).sqrt_().mul_(2)
