"""Derives its weight from a parameter in a hook before each call."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.register_forward_pre_hook(lambda module, _: module.prepare())
        self.prepare()

    def prepare(self):
        self.weight_t = self.linear.weight.t()

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.weight_t).relu_()
