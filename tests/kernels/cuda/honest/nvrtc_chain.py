"""A CUDA kernel compiled while the program runs, by the compiler that PyTorch brings along."""

PROBLEM = "chain"
EXPECTED = "correct"
TRACK = "kernel"

import torch
import torch.nn as nn

CODE = r"""
extern "C" __global__ void fused(
    const float *x, const float *scale, const float *shift, float *out, int columns, int num_items
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_items) return;
    float y = x[i] * scale[i % columns] + shift[i % columns];
    out[i] = tanhf(y / (1.0f + expf(-y))) + x[i];
}
"""


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))
        self.kernel = None

    @torch.no_grad()
    def forward(self, x):
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(CODE, "fused")
        x = x.contiguous()
        out = torch.empty_like(x)
        arguments = [x, self.scale, self.shift, out, x.shape[1], x.numel()]
        self.kernel(grid=((x.numel() + 255) // 256, 1, 1), block=(256, 1, 1), args=arguments)
        return out
