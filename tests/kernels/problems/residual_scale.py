import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.first = nn.Linear(features, 2 * features)
        self.second = nn.Linear(2 * features, features)
        self.scale = nn.Parameter(1e-6 * torch.ones(features))

    def forward(self, x):
        y = self.norm(x)
        return y + self.scale * self.second(torch.relu(self.first(y)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
