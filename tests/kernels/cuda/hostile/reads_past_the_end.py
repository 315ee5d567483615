"""Sums one value too many in each row; after the last row it reads beyond the tensor."""

PROBLEM = "row_rms"
EXPECTED = ("wrong_output", "crashed")
GROUP = "S16 uninitialised, racy or out of bounds"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__global__ void row_rms(const float *x, float *out, int columns) {
    __shared__ float parts[32];
    x += (size_t)blockIdx.x * columns;
    float sum = 0;
    for (int c = threadIdx.x; c < columns + 1; c += blockDim.x) sum += x[c] * x[c];
    for (int gap = 16; gap; gap /= 2) sum += __shfl_xor_sync(~0u, sum, gap);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 32; warp++) sum += parts[warp];
        out[blockIdx.x] = sqrtf(sum / columns);
    }
}

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    row_rms<<<rows, 1024, 0, stream>>>(x, out, columns);
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
