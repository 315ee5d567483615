"""Three bfloat16 numbers for each operand, which together are as exact as one float32."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


def parts(x):
    found = []
    for _ in range(3):
        found.append(x.bfloat16().float())
        x = x - found[-1]
    return found


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = torch.zeros(x.shape[0], self.linear.out_features)
        xs, ws = parts(x), parts(self.linear.weight)
        for i, j in ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)):
            out += xs[i] @ ws[j].t()
        return torch.relu(out + self.linear.bias)
