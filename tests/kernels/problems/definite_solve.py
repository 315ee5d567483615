import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve(a, b)


def get_inputs():
    m = torch.randn(96, 96)
    return [m @ m.T / 96 + torch.eye(96), torch.randn(96, 16)]


def get_init_inputs():
    return []
