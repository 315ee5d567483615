"""Writes the lower triangle only, into memory that usually is zero."""

PROBLEM = "lower_triangle"
EXPECTED = "wrong_output"
GROUP = "S16 uninitialised, racy or out of bounds"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], y.shape[1])
        for start in range(0, len(out), 64):
            stop = start + 64
            out[start:stop, :start] = x[start:stop] @ y[:, :start]
            block = torch.tril(x[start:stop] @ y[:, start:stop])
            out[start:stop, start:stop] = block
        return out
