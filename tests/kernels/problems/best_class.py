import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x):
        return self.linear(x).argmax(dim=1)


def get_inputs():
    return [torch.randn(2048, 64)]


def get_init_inputs():
    return [64, 64]
