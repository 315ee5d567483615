"""Adds up in half precision, sixteen products at a time."""

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
        total = torch.zeros(x.shape[0], self.linear.out_features, dtype=torch.float16)
        for columns in torch.arange(x.shape[1]).split(16):
            total += (x[:, columns] @ self.linear.weight[:, columns].t()).half()
        return torch.relu(total.float() + self.linear.bias)
