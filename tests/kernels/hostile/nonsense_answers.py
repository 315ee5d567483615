"""Writes what is no answer into everything that is open."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import contextlib
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for fd in range(3, 16):
            with contextlib.suppress(OSError):
                os.write(fd, b"[" * 60_000)
        return torch.softmax(x, dim=-1) * x
