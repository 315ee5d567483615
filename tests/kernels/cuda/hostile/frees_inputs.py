"""Gives the memory of its input back to the allocator while its owner still uses it."""

PROBLEM = "row_softmax"
EXPECTED = ("wrong_output", "crashed", "correct", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "S9 input mutation"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1) * x
        torch.cuda.caching_allocator_delete(x.data_ptr())
        return out
