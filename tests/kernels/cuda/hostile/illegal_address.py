"""A kernel that writes to an address that is nobody's."""

PROBLEM = "row_rms"
EXPECTED = "crashed"
GROUP = "E3 crash of the judge"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__global__ void write(float *out) { out[threadIdx.x] = 1; }

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    write<<<1, 32, 0, stream>>>((float *)0x10);
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
