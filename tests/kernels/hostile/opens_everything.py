"""Right, but opens files until no more can be had."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = ("correct", "crashed")
MAX_SPEEDUP = 1.25

import contextlib
import os

import torch
import torch.nn as nn


OPEN = []
with contextlib.suppress(OSError):
    while True:
        OPEN.append(os.open("/dev/null", os.O_RDONLY))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
