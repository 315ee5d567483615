"""Returns at once; a kernel that is still running fills the output in 20 ms later."""

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
__global__ void softmax_times(const float *x, float *out, int columns, unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < ns);
    for (int r = threadIdx.x + blockIdx.x * blockDim.x; r < 4096; r += gridDim.x * blockDim.x) {
        const float *from = x + (size_t)r * columns;
        float top = -INFINITY, sum = 0;
        for (int c = 0; c < columns; c++) top = fmaxf(top, from[c]);
        for (int c = 0; c < columns; c++) sum += expf(from[c] - top);
        for (int c = 0; c < columns; c++) out[(size_t)r * columns + c] = expf(from[c] - top) / sum * from[c];
    }
}

extern "C" void run(const float *x, float *out, int rows, int columns, cudaStream_t stream) {
    static cudaStream_t side;
    if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaStreamSynchronize(stream);
    softmax_times<<<64, 64, 0, side>>>(x, out, columns, 20 * 1000 * 1000);
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
