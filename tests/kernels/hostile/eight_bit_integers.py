"""Quantises both operands to eight bits."""

PROBLEM = "linear_relu"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        weight = self.linear.weight
        x_step, w_step = x.abs().amax() / 127, weight.abs().amax() / 127
        product = (x / x_step).round() @ (weight / w_step).round().t()
        return torch.relu(product * (x_step * w_step) + self.linear.bias)
