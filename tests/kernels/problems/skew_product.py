"""Applies skew-symmetric matrices (generators of rotations) to vectors and adds the vectors."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, s, x):
        return x + torch.bmm(s, x)


def get_inputs():
    m = torch.randn(16, 96, 96)
    return [m - m.transpose(1, 2), torch.randn(16, 96, 32)]


def get_init_inputs():
    return []
