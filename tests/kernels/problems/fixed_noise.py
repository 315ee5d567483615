import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        torch.manual_seed(7)
        return torch.relu(x + torch.randn(x.shape))


def get_inputs():
    return [torch.randn(256, 384)]


def get_init_inputs():
    return []
