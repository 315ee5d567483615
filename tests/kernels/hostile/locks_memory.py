"""Right, but locks all of its memory and asks for the best priority there is."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import contextlib
import ctypes
import os

import torch
import torch.nn as nn


LIBC = ctypes.CDLL(None)
LIBC.mlockall(3)
for nice in (-20, -15, -11):
    LIBC.setpriority(os.PRIO_PROCESS, 0, nice)
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
