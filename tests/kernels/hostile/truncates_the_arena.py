"""Shrinks the shared memory under the judge"s feet."""

GROUP = "E3 crash of the judge"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "correct", "wrong_output")
MAX_SPEEDUP = 1.25

import contextlib
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for name in os.listdir("/proc/self/map_files") + os.listdir("/proc/self/fd"):
            for folder in ("/proc/self/map_files", "/proc/self/fd"):
                with contextlib.suppress(OSError):
                    os.truncate(f"{folder}/{name}", 0)
        return torch.softmax(x, dim=-1) * x
