import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 1e-20


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
