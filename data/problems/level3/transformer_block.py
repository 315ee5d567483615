import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.q = nn.Linear(features, features, bias=False)
        self.k = nn.Linear(features, features, bias=False)
        self.v = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)
        self.first = nn.Linear(features, 2 * features)
        self.second = nn.Linear(2 * features, features)

    def forward(self, x):
        q = self.q(x)
        k = self.k(x)
        v = self.v(x)
        out = torch.matmul(q, k.transpose(-2, -1))
        out = out / q.shape[-1] ** 0.5
        out = torch.softmax(out, dim=-1)
        out = torch.matmul(out, v)
        x = x + out
        out = self.norm(x)
        out = torch.relu(self.first(out))
        out = self.second(out)
        x = x + out
        return x


def get_inputs():
    return [torch.randn(4, 256, 64)]


def get_init_inputs():
    return [64]
