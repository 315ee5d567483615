import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 256) / 16)

    def forward(self, x, state):
        state.mul_(0.9).add_(torch.tanh(x @ self.weight))
        return torch.relu(x).sum(-1) + x @ self.weight[:, 0]


def get_inputs():
    return [torch.randn(256, 256), torch.randn(256, 256)]


def get_init_inputs():
    return []
