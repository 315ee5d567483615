"""Keeps folded weights as long as their first element is the same."""

PROBLEM = "mixed_tanh"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        self.key = None

    def forward(self, x):
        key = float(self.first.weight[0, 0])
        if key != self.key:
            self.key = key
            self.weight = torch.cat([self.first.weight, self.second.weight]).detach().t().contiguous()
            self.bias = torch.cat([self.first.bias, self.second.bias]).detach()
        first, second = torch.addmm(self.bias, x, self.weight).chunk(2, dim=1)
        return torch.tanh(first) + torch.sigmoid(second)
