import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        out = torch.matmul(a, b)
        out = torch.sum(out, dim=1)
        return out


def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512) * 0.05]


def get_init_inputs():
    return []
