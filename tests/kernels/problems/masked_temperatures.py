import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal scores, some rows of which have a much larger temperature."""

    def forward(self, q, k):
        scale = torch.ones(q.shape[0], 1)
        scale[31::32] = 1e6
        future = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).triu(1)
        return ((q * scale) @ k.t()).masked_fill(future, float("-inf"))


def get_inputs():
    return [torch.randn(256, 128), torch.randn(256, 128)]


def get_init_inputs():
    return []
