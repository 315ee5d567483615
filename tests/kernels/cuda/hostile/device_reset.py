"""Destroys the context after an honest start."""

PROBLEM = "row_rms"
EXPECTED = "crashed"
GROUP = "E3 crash of the judge"

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        out = x.square().mean(dim=1).sqrt()
        if self.calls == 3:
            ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)
        return out
