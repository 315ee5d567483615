import torch
import torch.nn as nn


class Model(nn.Module):
    """Counts in place what it has seen."""

    def forward(self, x, ids, counts):
        counts += torch.bincount(ids, minlength=counts.numel())
        return x * 2


def get_inputs():
    return [torch.randn(64, 1024), torch.randint(0, 4096, (65536,)), torch.zeros(4096, dtype=torch.long)]


def get_init_inputs():
    return []
