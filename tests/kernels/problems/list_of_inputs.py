import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, tensors):
        rows = torch.cat(tensors, dim=1)
        return torch.softmax(rows.t() @ rows / 8, dim=1)


def get_inputs():
    return [[torch.randn(64, 48) for _ in range(8)]]


def get_init_inputs():
    return []
