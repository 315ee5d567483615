"""Asks the libraries for TF32 through the environment, which they read when they start."""

PROBLEM = "matmul"
EXPECTED = ("wrong_output", "correct")
MAX_SPEEDUP = 1.05
GROUP = "P2 global flag"

import os

import torch
import torch.nn as nn

os.environ["NVIDIA_TF32_OVERRIDE"] = "1"
os.environ["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] = "1"


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
