"""A CUDA kernel built by nvcc, a block of threads a row, the row kept in registers."""

PROBLEM = "add_layer_norm"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
__device__ float block_sum(float value) {
    __shared__ float parts[8];
    for (int gap = 16; gap; gap /= 2) value += __shfl_xor_sync(~0u, value, gap);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < 8; warp++) value += parts[warp];
    return value;
}

__global__ void add_norm(
    const float4 *x, const float4 *y, const float4 *weight, const float4 *bias, float4 *out, float epsilon
) {
    int at = blockIdx.x * 256 + threadIdx.x;
    float4 v = x[at], u = y[at], w = weight[threadIdx.x], b = bias[threadIdx.x];
    v = make_float4(v.x + u.x, v.y + u.y, v.z + u.z, v.w + u.w);
    float mean = block_sum(v.x + v.y + v.z + v.w) / 1024;
    v = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    float scale = rsqrtf(block_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w) / 1024 + epsilon);
    out[at] = make_float4(
        v.x * scale * w.x + b.x, v.y * scale * w.y + b.y, v.z * scale * w.z + b.z, v.w * scale * w.w + b.w);
}

extern "C" void run(
    const float4 *x, const float4 *y, const float4 *weight, const float4 *bias, float4 *out, float epsilon, int rows,
    cudaStream_t stream
) {
    add_norm<<<rows, 256, 0, stream>>>(x, y, weight, bias, out, epsilon);
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
        assert features == 1024
        self.norm = nn.LayerNorm(features)

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        epsilon, rows = ctypes.c_float(self.norm.eps), ctypes.c_int(x.shape[0])
        KERNEL.run(*pointers(x, y, self.norm.weight, self.norm.bias, out), epsilon, rows, stream())
        return out
