"""Right, but a thread writes to the log without a pause."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import os
import threading

import torch
import torch.nn as nn


def flood():
    while True:
        os.write(1, b"x" * 65_536)


threading.Thread(target=flood, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
