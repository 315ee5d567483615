"""One pass over the input in place of three."""

PROBLEM = "scaled_by_buffers"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("shift", torch.zeros(()))

    def forward(self, x):
        factor = 3.0 / self.scale
        return torch.addcmul(-self.shift * factor, x, factor)
