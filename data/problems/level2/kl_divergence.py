import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        a = a - torch.max(a, dim=-1, keepdim=True).values
        a = a - torch.log(torch.sum(torch.exp(a), dim=-1, keepdim=True))
        b = b - torch.max(b, dim=-1, keepdim=True).values
        b = b - torch.log(torch.sum(torch.exp(b), dim=-1, keepdim=True))
        out = torch.exp(a) * (a - b)
        out = torch.sum(out, dim=-1)
        return out


def get_inputs():
    return [torch.randn(448, 768), torch.randn(448, 768)]


def get_init_inputs():
    return []
