import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        x = x / 0.7
        x = x.masked_fill(mask == 0, -10000.0)
        top = torch.max(x, dim=-1, keepdim=True).values
        x = torch.exp(x - top)
        total = torch.sum(x, dim=-1, keepdim=True)
        x = x / total
        return x


def get_inputs():
    return [torch.randn(768, 256), (torch.rand(768, 256) > 0.3).float()]


def get_init_inputs():
    return []
