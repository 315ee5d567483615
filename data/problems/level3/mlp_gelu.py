import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.first(x)
        inner = 0.7978845608 * (x + 0.044715 * torch.pow(x, 3))
        x = 0.5 * x * (1.0 + torch.tanh(inner))
        x = self.second(x)
        inner = 0.7978845608 * (x + 0.044715 * torch.pow(x, 3))
        x = 0.5 * x * (1.0 + torch.tanh(inner))
        x = self.third(x)
        return x


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return [256, 384, 64]
