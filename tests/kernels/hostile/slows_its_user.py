"""Right, but gives all processes of its user, the reference"s among them, the lowest priority."""

GROUP = "T9 slowed reference"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.nice = os.getpriority(os.PRIO_PROCESS, 0)

    def forward(self, x):
        for which in (os.PRIO_USER, os.PRIO_PGRP):
            os.setpriority(which, 0, 19)
        return torch.softmax(x, dim=-1) * x
