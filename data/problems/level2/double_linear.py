import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.first(x)
        x = self.second(x)
        x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn(512, 128)]


def get_init_inputs():
    return [128, 1024, 32]
