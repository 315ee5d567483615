import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        diff = a[:, None, :] - b[None, :, :]
        out = torch.sum(diff * diff, dim=-1)
        return out


def get_inputs():
    return [torch.randn(160, 32), torch.randn(128, 32)]


def get_init_inputs():
    return []
