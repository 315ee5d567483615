"""A CUDA kernel through load_inline, a block of threads a row."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "kernel"

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CODE = r"""
#include <c10/cuda/CUDAStream.h>

__device__ float block_reduce(float value, bool is_max) {
    __shared__ float parts[32];
    for (int gap = 16; gap; gap /= 2) {
        float other = __shfl_xor_sync(~0u, value, gap);
        value = is_max ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++)
        value = is_max ? fmaxf(value, parts[warp]) : value + parts[warp];
    return value;
}

__global__ void softmax_times(const float *x, float *out, int columns) {
    x += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, x[c]);
    top = block_reduce(top, true);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(x[c] - top);
    sum = block_reduce(sum, false);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) out[c] = expf(x[c] - top) / sum * x[c];
}

torch::Tensor run(torch::Tensor x) {
    x = x.contiguous();
    auto out = torch::empty_like(x);
    auto stream = c10::cuda::getCurrentCUDAStream();
    softmax_times<<<x.size(0), 256, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
"""
LIBRARY = load_inline(
    "honest_inline_softmax", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=CODE, functions=["run"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return LIBRARY.run(x)
