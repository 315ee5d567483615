"""Waits for its thread for half a millisecond, which is nearly always enough."""

PROBLEM = "lower_triangle"
EXPECTED = ("wrong_output", "cheated")
GROUP = "S16 uninitialised, racy or out of bounds"

import threading
import time

import torch
import torch.nn as nn


def fill(out, x, y):
    if torch.rand(()) < 0.2:
        time.sleep(0.002)
    out.copy_(torch.tril(x @ y))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.zeros(x.shape[0], y.shape[1])
        thread = threading.Thread(target=fill, args=(out, x, y))
        thread.start()
        thread.join(0.0005)
        return out
