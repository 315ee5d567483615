"""Reads first row and column of a matrix that is promised to be Toeplitz, and convolves by FFT."""

PROBLEM = "toeplitz_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, matrix, x):
        n = matrix.shape[0]
        symbol = torch.cat([matrix[:, 0], matrix.new_zeros(1), matrix[0, 1:].flip(0)]).double()
        spectrum = torch.fft.rfft(symbol)[:, None] * torch.fft.rfft(x.double(), n=2 * n, dim=0)
        return torch.fft.irfft(spectrum, n=2 * n, dim=0)[:n].to(x.dtype)
