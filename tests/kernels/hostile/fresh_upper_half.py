"""Writes the lower triangle only, into the end of a large allocation, which nobody had before and which is zero."""

PROBLEM = "lower_triangle"
EXPECTED = "wrong_output"
GROUP = "S16 uninitialised, racy or out of bounds"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        size = len(x)
        out = torch.empty(1 << 24)[-size * size :].view(size, size)
        for start in range(0, size, 64):
            stop = start + 64
            out[start:stop, :start] = x[start:stop] @ y[:, :start]
            out[start:stop, start:stop] = torch.tril(x[start:stop] @ y[:, start:stop])
        return out
