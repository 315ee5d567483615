"""Right, but leaves every global setting of torch in a slow state."""

GROUP = "T10 global settings left behind"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import gc

import torch
import torch.nn as nn


torch.backends.mkldnn.enabled = False
torch.use_deterministic_algorithms(True)
torch.autograd.set_detect_anomaly(True)
torch.set_flush_denormal(True)
torch.set_default_dtype(torch.float64)
gc.set_threshold(1)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
