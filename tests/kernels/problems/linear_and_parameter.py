import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        return torch.relu(x @ self.weight.t()), self.weight


def get_inputs():
    return [torch.randn(768, 128)]


def get_init_inputs():
    return [128]
