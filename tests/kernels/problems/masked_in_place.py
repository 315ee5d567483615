import torch
import torch.nn as nn


class Model(nn.Module):
    """Masks its scores in place, by a mask that usually masks nothing."""

    def forward(self, scores, mask):
        return torch.softmax(scores.masked_fill_(~mask, -1e9), dim=-1)


def get_inputs():
    return [torch.randn(256, 256), torch.ones(256, 256, dtype=torch.bool)]


def get_init_inputs():
    return []
