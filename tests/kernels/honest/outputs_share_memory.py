"""Returns two tensors that are views of one."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        both = torch.empty(2, x.shape[0])
        torch.mean(x, dim=1, out=both[0])
        torch.std(x, dim=1, out=both[1])
        return tuple(both)
