import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.selu(x)


def get_inputs():
    return [torch.rand(256, 384)]


def get_init_inputs():
    return []
