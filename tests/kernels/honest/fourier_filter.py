"""Convolves by Fourier transforms."""

PROBLEM = "long_filter"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, taps):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(4, 1, taps) / taps**0.5)

    def forward(self, x):
        length, taps = x.shape[-1], self.filter.shape[-1]
        size = 1 << (length + taps - 1).bit_length()
        product = torch.fft.rfft(x, size) * torch.fft.rfft(self.filter.squeeze(1).flip(-1), size)
        full = torch.fft.irfft(product, size)
        return full[..., taps // 2 : taps // 2 + length]
