"""Right, but its first call keeps every core busy for seconds, where others are being judged."""

GROUP = "T11 load on the machine"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import os
import time

import torch
import torch.nn as nn


def burn(core):
    os.sched_setaffinity(0, {core})
    until = time.monotonic() + 4
    while time.monotonic() < until:
        pass
    os._exit(0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for core in list(range(os.cpu_count())) * 4:
            if os.fork() == 0:
                burn(core)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
