import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        x = torch.flip(x, [0])
        x = torch.cumsum(x, dim=0)
        x = torch.flip(x, [0])
        return x


def get_inputs():
    return [torch.randn(576, 640)]


def get_init_inputs():
    return []
