"""Uses clocks, try, pass and exec for nothing bad."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        start = time.perf_counter()
        try:
            exec("self.calls = getattr(self, 'calls', 0) + 1")
        except AttributeError:
            pass
        self.seconds = time.perf_counter() - start
        return torch.softmax(x, dim=-1) * x
