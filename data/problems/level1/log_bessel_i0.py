import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        x = torch.clamp(torch.abs(x), max=20.0)
        y = 0.25 * x * x
        term = torch.ones_like(y)
        total = torch.ones_like(y)
        for k in range(1, 36):
            term = term * y / (k * k)
            total = total + term
        out = torch.log(total)
        return out


def get_inputs():
    return [torch.randn(128, 256) * 6.0]


def get_init_inputs():
    return []
