"""C++ with a class and the standard library."""

PROBLEM = "histogram"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
#include <algorithm>
#include <array>
extern "C" void count(const long *values, long *out, long size) {
    std::array<std::array<int, 64>, 4> counts{};
    for (long i = 0; i < size; i++) counts[i & 3][values[i]]++;
    for (auto &part : counts) std::transform(part.begin(), part.end(), out, out, [](int a, long b) { return a + b; });
}
"""
subprocess.run(["c++", "-O2", "-shared", "-fPIC", "-x", "c++", "-o", "kernel.so", "-"], input=CODE.encode(), check=True)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, values):
        out = torch.zeros(64, dtype=torch.int64)
        KERNEL.count(ctypes.c_void_p(values.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(len(values)))
        return out
