import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        scale = F.softplus(self.weight).expand_as(x).contiguous()
        y = 0.25 * scale * scale
        term = torch.ones_like(y)
        total = torch.ones_like(y)
        for k in range(1, 20):
            term = term * y / (k * k)
            total = total + term
        out = scale * torch.cos(x - self.bias)
        out = out - torch.log(total) - 1.8378770664
        return out


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
