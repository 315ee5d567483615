import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(x) * y


def get_inputs():
    return [torch.randn(512, 1024).half() for _ in range(2)]


def get_init_inputs():
    return []
