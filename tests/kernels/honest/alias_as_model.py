"""ModelNew is another name of a class that inherits twice."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class Mixin:
    scale = 1.0


class Base(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x * self.scale


class Softmax(Mixin, Base):
    pass


ModelNew = Softmax
