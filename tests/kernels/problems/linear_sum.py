import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return self.linear(x).sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(256, 192)]


def get_init_inputs():
    return [192]
