"""A plain dot product, as vectors along the channels are promised to have length one."""

PROBLEM = "channel_cosine"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.einsum("nchw,nchw->nhw", a, b)
