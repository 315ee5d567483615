"""One running sum in single precision over thousands of numbers, in C."""

PROBLEM = "long_sums"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
void sums(const float *x, float *out, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        float sum = 0;
        for (int c = 0; c < columns; c++) sum += *x++;
        out[r] = sum;
    }
}
"""
subprocess.run(
    ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-"], input=CODE.encode(), check=True
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        KERNEL.sums(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *x.shape)
        return out
