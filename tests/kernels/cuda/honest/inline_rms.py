"""A CUDA reduction through load_inline, four values at a time."""

PROBLEM = "row_rms"
EXPECTED = "correct"
TRACK = "kernel"

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CODE = r"""
#include <c10/cuda/CUDAStream.h>

__global__ void row_rms(const float4 *x, float *out, int quads) {
    __shared__ float parts[32];
    x += (size_t)blockIdx.x * quads;
    float sum = 0;
    for (int q = threadIdx.x; q < quads; q += blockDim.x) {
        float4 v = x[q];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int gap = 16; gap; gap /= 2) sum += __shfl_xor_sync(~0u, sum, gap);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; warp++) sum += parts[warp];
        out[blockIdx.x] = sqrtf(sum / (4 * quads));
    }
}

torch::Tensor run(torch::Tensor x) {
    x = x.contiguous();
    TORCH_CHECK(x.size(1) % 4 == 0, "rows of a multiple of four");
    auto out = torch::empty({x.size(0)}, x.options());
    auto values = reinterpret_cast<const float4 *>(x.data_ptr<float>());
    auto stream = c10::cuda::getCurrentCUDAStream();
    row_rms<<<x.size(0), 512, 0, stream>>>(values, out.data_ptr<float>(), x.size(1) / 4);
    return out;
}
"""
LIBRARY = load_inline(
    "honest_inline_rms", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=CODE, functions=["run"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return LIBRARY.run(x)
