"""C++ that calls the library's product and a CUDA kernel of its own, in place."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CODE = r"""
#include <c10/cuda/CUDAStream.h>

__global__ void gelu(float *x, long num_items) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < num_items; i += gridDim.x * (long)blockDim.x)
        x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}

torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    auto out = at::addmm(bias, x, weight.t());
    auto stream = c10::cuda::getCurrentCUDAStream();
    gelu<<<1024, 256, 0, stream>>>(out.data_ptr<float>(), out.numel());
    return out;
}
"""
LIBRARY = load_inline(
    "honest_inline_linear_gelu",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=CODE,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    @torch.no_grad()
    def forward(self, x):
        return LIBRARY.run(x, self.linear.weight, self.linear.bias)
