"""One running sum in single precision for each element of a product, in C."""

PROBLEM = "long_products"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
void product(const float *x, const float *y, float *out, int rows, int inner, int columns) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float sum = 0;
            for (int k = 0; k < inner; k++) sum += x[r * inner + k] * y[k * columns + c];
            *out++ = sum;
        }
}
"""
subprocess.run(
    ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-"], input=CODE.encode(), check=True
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], y.shape[1])
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, y, out)]
        KERNEL.product(*pointers, x.shape[0], x.shape[1], y.shape[1])
        return out
