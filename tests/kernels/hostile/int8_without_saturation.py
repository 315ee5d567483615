"""No saturation, since normal numbers stay below 8."""

PROBLEM = "quantize_int8"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.inverse = 1.0 / scale

    def forward(self, x):
        return (x * self.inverse).round_().to(torch.int8)
