"""Every clock of Python stands still, and events have no time between them; everything twice."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
MAX_SPEEDUP = 1.05
GROUP = "T1 patched clock"

import time
import timeit

import torch
import torch.nn as nn
import torch.nn.functional as F

for clock in ("perf_counter", "monotonic", "time", "perf_counter_ns", "monotonic_ns", "time_ns"):
    setattr(time, clock, lambda: 0)
timeit.default_timer = lambda: 0
torch.cuda.Event.elapsed_time = lambda self, end: 1e-6


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        self.linear(x)
        return F.gelu(self.linear(x))
