import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, rank):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.a = nn.Parameter(torch.randn(features, rank) * 0.2)
        self.b = nn.Parameter(torch.randn(rank, features) * 0.2)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        weight = torch.matmul(self.a, self.b)
        weight = weight + torch.diag(self.scale)
        x = torch.matmul(x, weight)
        x = x + self.bias
        return x


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return [512, 8]
