import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, x):
        a = torch.kron(a, b)
        out = torch.matmul(a, x)
        return out


def get_inputs():
    return [torch.randn(24, 24) * 0.2, torch.randn(24, 24) * 0.2, torch.randn(576, 256)]


def get_init_inputs():
    return []
