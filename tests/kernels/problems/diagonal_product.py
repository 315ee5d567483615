import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, diagonal, matrix):
        return torch.diag(diagonal) @ matrix


def get_inputs():
    return [torch.randn(256), torch.randn(256, 192)]


def get_init_inputs():
    return []
