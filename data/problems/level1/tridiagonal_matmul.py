import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, c, x):
        a = torch.diag(a) + torch.diag(b, 1) + torch.diag(c, -1)
        out = torch.matmul(a, x)
        return out


def get_inputs():
    return [torch.randn(512), torch.randn(511), torch.randn(511), torch.randn(512, 384)]


def get_init_inputs():
    return []
