"""Compares its weights with a copy before it uses what it derived from them."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        self.copies = None

    def forward(self, x):
        current = [parameter.detach() for parameter in self.parameters()]
        if self.copies is None or not all(torch.equal(a, b) for a, b in zip(current, self.copies)):
            self.copies = [parameter.clone() for parameter in current]
            self.weight = torch.cat([self.first.weight, self.second.weight]).detach().t().contiguous()
            self.bias = torch.cat([self.first.bias, self.second.bias]).detach()
        first, second = torch.addmm(self.bias, x, self.weight).chunk(2, dim=1)
        return torch.tanh(first) + torch.sigmoid(second)
