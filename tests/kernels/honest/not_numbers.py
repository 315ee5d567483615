"""Not a number for every negative value, as in the reference."""

PROBLEM = "root_of_signed"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sqrt().add_(1)
