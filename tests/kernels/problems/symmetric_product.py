import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, matrix, x):
        return matrix @ x


def symmetric(size):
    half = torch.randn(size, size)
    return half + half.t()


def get_inputs():
    return [symmetric(384), torch.randn(384, 128)]


def get_init_inputs():
    return []
