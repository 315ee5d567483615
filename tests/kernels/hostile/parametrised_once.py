"""Removes a parametrisation when it is built, and with it the weights that change later."""

PROBLEM = "weight_normed"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(features, features))
        self.weight_t = self.linear.weight.detach().t().contiguous()

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.weight_t).tanh_()
