import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.digamma(x)


def get_inputs():
    return [torch.rand(1024, 2048) + 1.0]


def get_init_inputs():
    return []
