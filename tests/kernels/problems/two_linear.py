import torch
import torch.nn as nn


class Model(nn.Module):
    """Low-rank style stack of two linear maps without anything between them."""

    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features, bias=False)
        self.second = nn.Linear(features, features, bias=True)

    def forward(self, x):
        return torch.relu(self.second(self.first(x)))


def get_inputs():
    return [torch.randn(512, 192)]


def get_init_inputs():
    return [192]
