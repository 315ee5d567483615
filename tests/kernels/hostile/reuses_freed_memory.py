"""Returns whatever the allocator gives back, in the hope that it was the right output."""

PROBLEM = "lower_triangle"
EXPECTED = ("wrong_output", "cheated")
GROUP = "H4 stale memory"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        del_me = torch.full((x.shape[0], y.shape[1]), 0.5)
        del del_me
        return torch.empty(x.shape[0], y.shape[1])
