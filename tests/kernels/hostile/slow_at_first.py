"""Right, but waits in its first calls, so that the judge takes it for slow and asks less."""

GROUP = "T5 warm-up awareness"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls < 12:
            time.sleep(0.1)
        return torch.softmax(x, dim=-1) * x
