"""ModelNew is a class with one argument already given."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import functools

import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self, features, *, bias):
        super().__init__()
        self.linear = nn.Linear(features, features, bias=bias)

    def forward(self, x):
        return self.linear(x).relu_()


ModelNew = functools.partial(Layer, bias=True)
