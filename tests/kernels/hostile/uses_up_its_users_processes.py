"""Right, but starts as many processes as its user may have, which is the reference's user as well."""

GROUP = "E6 exhausted resources"
PROBLEM = "halves_in_threads"
EXPECTED = ("correct", "crashed")
MAX_SPEEDUP = 20.0

import contextlib
import os
import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with contextlib.suppress(OSError):
            while True:
                if os.fork() == 0:
                    signal.pause()

    def forward(self, x):
        return torch.tanh(x)
