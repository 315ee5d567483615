import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, x):
        out = torch.matmul(a, b)
        out = torch.matmul(out, x)
        return out


def get_inputs():
    return [torch.randn(512, 512) * 0.05, torch.randn(512, 512) * 0.05, torch.randn(512, 16)]


def get_init_inputs():
    return []
