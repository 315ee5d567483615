import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.log_softmax(x.masked_fill(mask, float("-inf")), dim=-1)


def get_inputs():
    return [torch.randn(128, 512), torch.rand(128, 512) < 0.3]


def get_init_inputs():
    return []
