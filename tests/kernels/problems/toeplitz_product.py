"""Products with Toeplitz matrices: every diagonal of each matrix has one value, as the problem promises."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, matrix, x):
        return torch.matmul(matrix, x)


def get_inputs():
    n = 384
    diagonals = torch.randn(2 * n - 1)
    places = torch.arange(n).unsqueeze(1) - torch.arange(n).unsqueeze(0) + n - 1
    return [diagonals[places], torch.randn(n, 48)]


def get_init_inputs():
    return []
