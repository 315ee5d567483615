import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        out = a.new_zeros(a.shape[0], 2 * a.shape[1])
        for t in range(a.shape[1]):
            out[:, 2 * t] = a[:, t]
            out[:, 2 * t + 1] = b[:, t]
        return out


def get_inputs():
    return [torch.randn(256, 256), torch.randn(256, 256)]


def get_init_inputs():
    return []
