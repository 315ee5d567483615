import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, x):
        out = torch.einsum("bij,bjk->bik", a, b)
        out = torch.einsum("bik,bk->bi", out, x)
        out = out * 0.5
        return out


def get_inputs():
    return [torch.randn(12, 176, 176) * 0.1, torch.randn(12, 176, 176) * 0.1, torch.randn(12, 176)]


def get_init_inputs():
    return []
