import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        heads = x.view(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)
        return heads.contiguous()


def get_inputs():
    return [torch.randn(16, 128, 256)]


def get_init_inputs():
    return [8]
