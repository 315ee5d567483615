import copy

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, count):
        super().__init__()
        head = nn.Linear(features, features)
        self.heads = nn.ModuleList(copy.deepcopy(head) for _ in range(count))

    def forward(self, x):
        return torch.stack([torch.tanh(head(x)) for head in self.heads]).mean(0)


def get_inputs():
    return [torch.randn(128, 128)]


def get_init_inputs():
    return [128, 4]
