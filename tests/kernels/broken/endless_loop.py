"""Ignores every signal that can be ignored and loops."""

PROBLEM = "row_softmax"
EXPECTED = "timeout"

import contextlib
import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for number in range(1, signal.NSIG):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        while True:
            pass
