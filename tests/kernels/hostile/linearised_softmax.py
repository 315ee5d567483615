"""Exp(s) is 1 + s because projections start small and a layer norm keeps inputs in size."""

PROBLEM = "small_init_attention"
EXPECTED = "wrong_output"
GROUP = "S12 below the absolute tolerance"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
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
        q, k, v = self.query(h) * h.shape[-1] ** -0.5, self.key(h), self.value(h)
        k = k - k.mean(dim=-2, keepdim=True)
        n = x.shape[-2]
        return v.mean(dim=-2, keepdim=True) + q @ (k.transpose(-2, -1) @ v / n)
