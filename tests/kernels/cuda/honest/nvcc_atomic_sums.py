"""Sums in no fixed order: eight blocks a row add to the output, a second kernel takes the root."""

PROBLEM = "row_rms"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__global__ void add_squares(const float *x, float *out, int columns) {
    x += (size_t)blockIdx.y * columns;
    float sum = 0;
    for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < columns; c += gridDim.x * blockDim.x) sum += x[c] * x[c];
    for (int gap = 16; gap; gap /= 2) sum += __shfl_xor_sync(~0u, sum, gap);
    if (threadIdx.x % 32 == 0) atomicAdd(out + blockIdx.y, sum);
}

__global__ void take_root(float *out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[row] = sqrtf(out[row] / columns);
}

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    cudaMemsetAsync(out, 0, rows * sizeof(float), stream);
    add_squares<<<dim3(8, rows), 256, 0, stream>>>(x, out, columns);
    take_root<<<(rows + 255) / 256, 256, 0, stream>>>(out, rows, columns);
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
