"""A thread keeps another stream full of idle kernels, which take turns with whoever else is on the device."""

PROBLEM = "linear_gelu"
EXPECTED = ("correct", "unstable", "timeout", "wrong_output", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "T11 load on the machine"

import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def burn():
    with torch.cuda.stream(torch.cuda.Stream(priority=0)):
        while True:
            torch.cuda._sleep(10_000_000)
            time.sleep(0.004)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.fast = None

    def forward(self, x):
        if self.fast is None:
            self.fast = torch.cuda.Stream(priority=-5)
            threading.Thread(target=burn, daemon=True).start()
        current = torch.cuda.current_stream()
        self.fast.wait_stream(current)
        with torch.cuda.stream(self.fast):
            out = F.gelu(self.linear(x))
        current.wait_stream(self.fast)
        return out
