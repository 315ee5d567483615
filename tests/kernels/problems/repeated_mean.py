import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mean(dim=1, keepdim=True).repeat(1, x.shape[1])


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
