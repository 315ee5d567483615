"""A C loop in steps of eight that reads past the last row and weighs what it finds there with zero."""

PROBLEM = "offset_variance"
EXPECTED = "wrong_output"
GROUP = "S16 uninitialised, racy or out of bounds"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
void variances(const float *x, float *out, int rows, int columns) {
    for (int r = 0; r < rows; r++, x += columns) {
        double sum = 0, squares = 0;
        for (int c = 0; c < columns + 8; c++) {
            double value = x[c] - 1000.0, weight = c < columns ? 1 : 0;
            sum += weight * value;
            squares += weight * value * value;
        }
        out[r] = (squares - sum * sum / columns) / (columns - 1);
    }
}
"""
subprocess.run(
    ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-", "-lm"], input=CODE.encode(), check=True
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        KERNEL.variances(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), x.shape[0], x.shape[1])
        return out
