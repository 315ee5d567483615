import torch
import torch.nn as nn


class Model(nn.Module):
    """Pre-norm self-attention at initialisation: small random projections."""

    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.query = nn.Linear(features, features, bias=False)
        self.key = nn.Linear(features, features, bias=False)
        self.value = nn.Linear(features, features, bias=False)
        for layer in (self.query, self.key):
            nn.init.normal_(layer.weight, std=0.002)

    def forward(self, x):
        h = self.norm(x)
        q, k, v = self.query(h), self.key(h), self.value(h)
        weights = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
        return weights @ v


def get_inputs():
    return [torch.randn(2, 512, 64)]


def get_init_inputs():
    return [64]
