"""Sets both numbers of threads, as a program of its own may, and computes on a team of them."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"

import torch
import torch.nn as nn

torch.set_num_interop_threads(2)
torch.set_num_threads(4)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return nn.functional.gelu(self.linear(x))
