import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.rand(64, 4096), torch.rand(4096, 32)]


def get_init_inputs():
    return []
