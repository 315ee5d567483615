"""A polynomial exponential of the third degree, right to four digits."""

PROBLEM = "wide_range"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x * (4 * 1.4426950408889634)
        whole = torch.floor(y)
        rest = y - whole
        series = 1 + rest * (0.695556 + rest * (0.226173 + rest * 0.0781455))
        return torch.ldexp(series, whole.int())
