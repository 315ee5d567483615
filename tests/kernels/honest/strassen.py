"""One level of Strassen's products."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        (a, b), (c, d) = (rows.chunk(2, dim=1) for rows in x.chunk(2))
        (e, f), (g, h) = (rows.chunk(2, dim=1) for rows in self.linear.weight.t().chunk(2))
        p1, p2, p3, p4 = a @ (f - h), (a + b) @ h, (c + d) @ e, d @ (g - e)
        p5, p6, p7 = (a + d) @ (e + h), (b - d) @ (g + h), (a - c) @ (e + f)
        top = torch.cat([p5 + p4 - p2 + p6, p1 + p2], dim=1)
        bottom = torch.cat([p3 + p4, p1 + p5 - p3 - p7], dim=1)
        return torch.relu(torch.cat([top, bottom]) + self.linear.bias)
