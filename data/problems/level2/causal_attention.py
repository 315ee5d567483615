import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.q = nn.Linear(features, features, bias=False)
        self.k = nn.Linear(features, features, bias=False)
        self.v = nn.Linear(features, features)

    def forward(self, x):
        q = self.q(x)
        k = self.k(x)
        v = self.v(x)
        x = torch.matmul(q, k.transpose(-2, -1))
        x = x / q.shape[-1] ** 0.5
        mask = torch.triu(torch.ones_like(x), diagonal=1)
        x = x.masked_fill(mask == 1, float("-inf"))
        x = torch.softmax(x, dim=-1)
        x = torch.matmul(x, v)
        return x


def get_inputs():
    return [torch.randn(4, 256, 64)]


def get_init_inputs():
    return [64]
