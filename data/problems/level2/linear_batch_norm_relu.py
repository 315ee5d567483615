import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)
        self.register_buffer("mean", torch.randn(hidden) * 0.1)
        self.register_buffer("var", torch.rand(hidden) + 0.5)
        self.weight = nn.Parameter(torch.rand(hidden) + 0.5)
        self.bias = nn.Parameter(torch.randn(hidden))

    def forward(self, x):
        x = self.linear(x)
        x = (x - self.mean) / torch.sqrt(self.var + 1e-5)
        x = x * self.weight + self.bias
        x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return [256, 512]
