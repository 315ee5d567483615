import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x * torch.tanh(x))


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
