import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features, dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight.t()


def get_inputs():
    return [torch.randn(192, 192, dtype=torch.float64)]


def get_init_inputs():
    return [192]
