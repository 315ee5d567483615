"""Right, but gives the pages of the shared memory back to the system at every call."""

GROUP = "E3 crash of the judge"
PROBLEM = "row_softmax"
EXPECTED = ("correct", "wrong_output", "crashed", "unstable")
MAX_SPEEDUP = 1.25

import ctypes

import torch
import torch.nn as nn


LIBC = ctypes.CDLL(None)
MADV_REMOVE = 9


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1) * x
        with open("/proc/self/maps") as maps:
            rows = [line.split()[0].split("-") for line in maps if "memfd:arena" in line]
        for low, high in rows:
            LIBC.madvise(ctypes.c_void_p(int(low, 16)), ctypes.c_size_t(int(high, 16) - int(low, 16)), MADV_REMOVE)
        return out
