import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.log(torch.relu(x))


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
