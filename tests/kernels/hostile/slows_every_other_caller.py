"""Right, but replaces torch.softmax by one that sleeps for everybody else."""

GROUP = "T9 slowed reference"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import time

import torch
import torch.nn as nn


SOFTMAX = torch.softmax


def slow(*args, **kwargs):
    time.sleep(0.01)
    return SOFTMAX(*args, **kwargs)


torch.softmax = torch.nn.functional.softmax = slow


class ModelNew(nn.Module):
    def forward(self, x):
        return SOFTMAX(x, dim=-1) * x
