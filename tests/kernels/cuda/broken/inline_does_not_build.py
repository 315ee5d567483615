"""CUDA code that load_inline refuses."""

PROBLEM = "row_rms"
EXPECTED = "compile_error"

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

LIBRARY = load_inline(
    "broken_inline",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources="torch::Tensor run(torch::Tensor x) { return undeclared(x); }",
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return LIBRARY.run(x)
