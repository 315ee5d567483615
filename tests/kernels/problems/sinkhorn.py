import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(30):
            x = x - torch.logsumexp(x, dim=1, keepdim=True)
            x = x - torch.logsumexp(x, dim=0, keepdim=True)
        return torch.exp(x)


def get_inputs():
    return [0.3 * torch.randn(32, 32)]


def get_init_inputs():
    return []
