"""Ignores every signal that can be ignored and never answers."""

GROUP = "E4 hang"
PROBLEM = "row_softmax"
EXPECTED = "timeout"

import signal
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
