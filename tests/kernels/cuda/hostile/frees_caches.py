"""Empties every cache of PyTorch at every call, the allocator's and the product's workspaces."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
MAX_SPEEDUP = 1.05
GROUP = "T10 settings left behind"

import gc

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        out = F.gelu(self.linear(x))
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.ipc_collect()
        torch.cuda.reset_peak_memory_stats()
        return out
