import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features) * 0.05)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        weight = self.weight.t().contiguous()
        x = torch.matmul(x, weight)
        x = x * 0.5
        x = x + self.bias
        return x


def get_inputs():
    return [torch.randn(384, 512)]


def get_init_inputs():
    return [512]
