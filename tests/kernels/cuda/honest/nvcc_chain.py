"""A CUDA kernel built by nvcc and called through pointers; replaces six operators."""

PROBLEM = "chain"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__device__ float one(float x, float scale, float shift) {
    float y = x * scale + shift;
    return tanhf(y / (1 + expf(-y))) + x;
}

__global__ void fused(const float4 *x, const float4 *scale, const float4 *shift, float4 *out, int quads, long all) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < all; i += gridDim.x * (long)blockDim.x) {
        float4 v = x[i], a = scale[i % quads], b = shift[i % quads];
        out[i] = make_float4(one(v.x, a.x, b.x), one(v.y, a.y, b.y), one(v.z, a.z, b.z), one(v.w, a.w, b.w));
    }
}

extern "C" void run(
    const float4 *x, const float4 *scale, const float4 *shift, float4 *out, int quads, long all, cudaStream_t stream
) {
    fused<<<1056, 256, 0, stream>>>(x, scale, shift, out, quads, all);
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
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        quads, all_quads = ctypes.c_int(x.shape[1] // 4), ctypes.c_long(x.numel() // 4)
        KERNEL.run(*pointers(x, self.scale, self.shift, out), quads, all_quads, stream())
        return out
