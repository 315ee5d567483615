"""C with OpenMP."""

PROBLEM = "gelu_rows"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
#include <math.h>
void gelu(const float *x, float *out, long size) {
    #pragma omp parallel for
    for (long i = 0; i < size; i++) out[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}
"""
subprocess.run(
    ["cc", "-O3", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-", "-lm"],
    input=CODE.encode(),
    check=True,
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        KERNEL.gelu(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(x.numel()))
        return out
