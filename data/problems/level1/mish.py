import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        out = torch.log(1.0 + torch.exp(-torch.abs(x))) + torch.relu(x)
        out = torch.tanh(out)
        out = x * out
        return out


def get_inputs():
    return [torch.randn(384, 1024)]


def get_init_inputs():
    return []
