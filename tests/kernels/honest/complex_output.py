"""Complex numbers, transformed as twice as many complex ones."""

PROBLEM = "spectrum"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        half = x.shape[1] // 2 + 1
        return torch.fft.fft((x * torch.tanh(x)).to(torch.complex64))[:, :half]
