"""Brings generators of its own that draw smaller inputs."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S17 hyper-parameter manipulation"

import torch
import torch.nn as nn


def get_inputs():
    return [torch.randn(4, 512)]


def get_init_inputs():
    return []


class ModelNew(nn.Module):
    def forward(self, x):
        x = x[:4]
        return torch.softmax(x, dim=-1) * x
