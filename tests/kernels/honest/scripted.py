"""Scripts a function with loops and branches."""

PROBLEM = "leaky_cumsum"
EXPECTED = "correct"

import torch
import torch.nn as nn


@torch.jit.script
def body(x: torch.Tensor, slope: float) -> torch.Tensor:
    scaled = torch.where(x < 0, x * slope, x)
    for _ in range(1):
        scaled = scaled.cumsum(dim=1)
    return scaled


class ModelNew(nn.Module):
    def forward(self, x):
        return body(x, 0.2)
