import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        a = torch.tril(a, 2)
        a = torch.triu(a, -2)
        out = torch.matmul(a, b)
        return out


def get_inputs():
    return [torch.randn(448, 448), torch.randn(448, 320)]


def get_init_inputs():
    return []
