"""Registers an operator of its own with the library."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


@torch.library.custom_op("example::softmax_times", mutates_args=())
def softmax_times(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1) * x


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.example.softmax_times(x)
