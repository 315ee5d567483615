"""A plain C loop over a row of weights, in single precision."""

PROBLEM = "linear_relu"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
void linear_relu(const float *x, const float *w, const float *b, float *out, int rows, int inner, int columns) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float sum = b[c];
            for (int k = 0; k < inner; k++) sum += x[r * inner + k] * w[c * inner + k];
            *out++ = sum > 0 ? sum : 0;
        }
}
"""
subprocess.run(
    ["cc", "-Ofast", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-"], input=CODE.encode(), check=True
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = torch.empty(x.shape[0], self.linear.out_features)
        tensors = [t.detach().contiguous() for t in (x, self.linear.weight, self.linear.bias)]
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, out)]
        KERNEL.linear_relu(*pointers, x.shape[0], x.shape[1], out.shape[1])
        return out
