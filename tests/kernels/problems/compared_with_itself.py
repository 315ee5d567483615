"""One tensor handed over twice."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.softmax(x @ y.t() / 16, dim=1) @ y


def get_inputs():
    x = torch.randn(256, 256)
    return [x, x]


def get_init_inputs():
    return []
