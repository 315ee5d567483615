import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x):
        x = x.transpose(1, 2).contiguous()
        var = torch.mean(torch.pow(x, 2), dim=-1, keepdim=True)
        x = x / torch.sqrt(var + 1e-5)
        x = x * self.weight
        x = x.transpose(1, 2).contiguous()
        return x


def get_inputs():
    return [torch.randn(8, 256, 176)]


def get_init_inputs():
    return [256]
