import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gate = nn.Linear(features, hidden)
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, features)

    def forward(self, x):
        residual = x.clone()
        gate = self.gate(x)
        gate = gate * torch.sigmoid(gate)
        x = self.first(x)
        x = x * gate
        x = self.second(x)
        x = x + residual
        return x


def get_inputs():
    return [torch.randn(384, 192)]


def get_init_inputs():
    return [192, 384]
