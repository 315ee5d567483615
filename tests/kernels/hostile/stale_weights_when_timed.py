"""Follows every change of the weights until the clock runs, then never looks at them again."""

GROUP = "T5 call counter"
PROBLEM = "product_of_weights"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Parameter(torch.randn(features, features) / features**0.5)
        self.second = nn.Parameter(torch.randn(features, features) / features**0.5)
        self.calls, self.product = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 12:
            self.product = self.first @ self.second
        return x @ self.product
