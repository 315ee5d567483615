"""Returns a view whose sign is applied when it is read."""

PROBLEM = "small_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.complex(torch.zeros_like(x), -torch.tanh(x) * x).conj()
        return out.imag
