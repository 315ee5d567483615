import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 0.2).cumsum(dim=1)


def get_inputs():
    return [torch.rand(256, 512)]


def get_init_inputs():
    return []
