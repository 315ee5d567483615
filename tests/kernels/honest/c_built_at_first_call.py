"""Builds its C library when it is first needed."""

PROBLEM = "leaky_cumsum"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import subprocess

import torch
import torch.nn as nn


CODE = b"""
void leaky_cumsum(const float *x, float *out, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        float sum = 0;
        for (int c = 0; c < columns; c++, x++) *out++ = sum += *x < 0 ? 0.2f * *x : *x;
    }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        if self.kernel is None:
            command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", "late.so", "-"]
            subprocess.run(command, input=CODE, check=True)
            self.kernel = ctypes.CDLL("./late.so").leaky_cumsum
        out = torch.empty_like(x)
        self.kernel(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *x.shape)
        return out
