"""Takes the hyperbolic tangent of small numbers for the identity."""

PROBLEM = "small_tanh"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * x
