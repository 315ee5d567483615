"""A C function, compiled when it is built and called through pointers."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
#include <math.h>
void softmax_times(const float *x, float *out, int rows, int columns) {
    for (int r = 0; r < rows; r++, x += columns, out += columns) {
        float top = x[0], sum = 0;
        for (int c = 1; c < columns; c++) top = fmaxf(top, x[c]);
        for (int c = 0; c < columns; c++) sum += out[c] = expf(x[c] - top);
        for (int c = 0; c < columns; c++) out[c] *= x[c] / sum;
    }
}
"""
subprocess.run(
    ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-", "-lm"], input=CODE.encode(), check=True
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        KERNEL.softmax_times(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), x.shape[0], x.shape[1])
        return out
