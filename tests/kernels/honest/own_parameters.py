"""Plain parameters with the library's initial values instead of a layer."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        bound = features**-0.5
        self.kernel = nn.Parameter(torch.empty(features, features).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.empty(features).uniform_(-bound, bound))

    def forward(self, x):
        return torch.relu(torch.addmm(self.offset, x, self.kernel.t()))
