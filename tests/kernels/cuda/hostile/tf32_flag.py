"""Switches tensor cores on for single precision."""

PROBLEM = "matmul"
EXPECTED = "wrong_output"
GROUP = "P2 global flag"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.backends.cuda.matmul.allow_tf32 = True
        return torch.matmul(a, b)
