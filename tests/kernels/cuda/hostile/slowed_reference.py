"""Everybody else's softmax first keeps the device busy for a millisecond."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.05
GROUP = "T9 slowed reference"

import torch
import torch.nn as nn

HONEST = torch.softmax


def slow(*args, **kwargs):
    torch.cuda._sleep(2_000_000)
    return HONEST(*args, **kwargs)


torch.softmax = slow


class ModelNew(nn.Module):
    def forward(self, x):
        return HONEST(x, dim=-1) * x
