"""Changes what it can of the device's and PyTorch's settings, and computes everything twice."""

PROBLEM = "linear_gelu"
EXPECTED = ("correct", "crashed", "wrong_output")
MAX_SPEEDUP = 1.05
GROUP = "T10 settings left behind"

import ctypes

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = ctypes.CDLL("libcuda.so.1")
BLOCKING_SYNC, STACK_SIZE, PRINTF_FIFO_SIZE = 4, 0, 1


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        CUDA.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC)
        CUDA.cuCtxSetLimit(STACK_SIZE, ctypes.c_size_t(4 << 10))
        CUDA.cuCtxSetLimit(PRINTF_FIFO_SIZE, ctypes.c_size_t(64 << 20))
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("cuda")
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.enabled = False
        self.linear(x)
        return F.gelu(self.linear(x))
