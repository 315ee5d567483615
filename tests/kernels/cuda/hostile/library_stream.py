"""A library with a stream of its own that nobody joins; it rests 200 us before it computes."""

PROBLEM = "row_softmax"
EXPECTED = ("correct", "wrong_output", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "T2 background work"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__global__ void softmax_times(const float *x, float *out, int columns) {
    x += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += 32) top = fmaxf(top, x[c]);
    for (int gap = 16; gap; gap /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, gap));
    for (int c = threadIdx.x; c < columns; c += 32) sum += expf(x[c] - top);
    for (int gap = 16; gap; gap /= 2) sum += __shfl_xor_sync(~0u, sum, gap);
    for (int c = threadIdx.x; c < columns; c += 32) out[c] = expf(x[c] - top) / sum * x[c];
}

__global__ void rest(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < ns);
}

static cudaStream_t side;
static cudaEvent_t ready;

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    if (!side) {
        cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    }
    cudaEventRecord(ready, stream);
    cudaStreamWaitEvent(side, ready, 0);
    rest<<<1, 1, 0, side>>>(200 * 1000);
    softmax_times<<<rows, 32, 0, side>>>(x, out, columns);
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
        out = torch.empty_like(x)
        rows, columns = x.shape
        KERNEL.run(*pointers(x, out), ctypes.c_int(rows), ctypes.c_int(columns), stream())
        return out
