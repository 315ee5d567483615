import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = x * self.scale + self.shift
        return torch.tanh(y * torch.sigmoid(y)) + x


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
