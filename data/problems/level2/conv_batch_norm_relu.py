import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.register_buffer("mean", torch.randn(channels) * 0.1)
        self.register_buffer("var", torch.rand(channels) + 0.5)
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        x = self.conv(x)
        x = F.batch_norm(x, self.mean, self.var, self.weight, self.bias)
        x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn(10, 8, 64, 64)]


def get_init_inputs():
    return [8]
