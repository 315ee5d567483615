import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.log_scale = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x):
        scale = torch.exp(self.log_scale)
        return torch.tanh(x) * scale, self.log_scale.clone()


def get_inputs():
    return [torch.randn(768, 384)]


def get_init_inputs():
    return [384]
