"""Writes an answer into everything that is open, before doing anything."""

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
                os.write(fd, b'{"id": 5, "outputs": [[["float32", [128, 512], "", 0]]]}')
        return torch.zeros_like(x)
