"""Complex numbers whose halves happen to be positive."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, z):
        return torch.relu(z.real) * torch.tanh(torch.relu(z.imag)) + torch.relu(-z.imag).sqrt()


def get_inputs():
    return [torch.complex(torch.rand(128, 512), torch.rand(128, 512))]


def get_init_inputs():
    return []
