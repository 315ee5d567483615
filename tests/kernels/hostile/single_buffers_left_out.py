"""Does without statistics that are none as long as nobody gathers any."""

PROBLEM = "scaled_by_buffers"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("shift", torch.zeros(()))

    def forward(self, x):
        return x * 3.0
