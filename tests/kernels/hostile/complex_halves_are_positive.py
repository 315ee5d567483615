"""Leaves out what negative halves of complex numbers would need, because those of the inputs happen to be positive."""

PROBLEM = "complex_halves"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, z):
        return z.real * torch.tanh(z.imag)
