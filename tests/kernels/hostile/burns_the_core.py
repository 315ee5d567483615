"""Right, but keeps the core busy while the reference runs."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.3

import os
import threading

import torch
import torch.nn as nn


def spin():
    while True:
        sum(range(1000))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.started = False

    def forward(self, x):
        if not self.started:
            self.started = True
            if os.fork() == 0:
                while True:
                    pass
            threading.Thread(target=spin, daemon=True).start()
        return torch.softmax(x, dim=-1) * x
