"""Right, but never looks after its dead children."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for _ in range(40):
            if os.fork() == 0:
                os._exit(0)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
