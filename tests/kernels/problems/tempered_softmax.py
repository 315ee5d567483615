import random

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, temperature, dim, mask):
        scores = x / temperature
        if mask is not None:
            scores = scores + mask
        return torch.softmax(scores, dim=dim)


def get_inputs():
    return [torch.randn(512, 512), random.uniform(0.5, 2.0), -1, None]


def get_init_inputs():
    return []
