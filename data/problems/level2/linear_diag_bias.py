import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = self.linear(x)
        scale = torch.diag(self.scale)
        x = torch.matmul(x, scale)
        x = x + self.bias
        x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn(256, 384)]


def get_init_inputs():
    return [384]
