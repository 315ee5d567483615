"""A kernel that waits for a flag that nobody sets."""

PROBLEM = "row_rms"
EXPECTED = "timeout"
GROUP = "E4 hang"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__global__ void wait(volatile float *flag) {
    while (flag[0] != 611.0f) {}
}

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    wait<<<132, 1024, 0, stream>>>(out);
}
"""
NVCC = os.path.join(CUDA_HOME or "/usr/local/cuda", "bin", "nvcc")
FLAGS = ["-O3", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-x", "cu", "-o", "kernel.so", "-"]
subprocess.run([NVCC, *FLAGS], input=CODE.encode(), check=True)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


def pointers(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        out = torch.empty(rows, device=x.device)
        KERNEL.run(*pointers(x, out), ctypes.c_int(rows), ctypes.c_int(columns), stream())
        return out
