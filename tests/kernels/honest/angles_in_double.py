"""Makes its table of angles in double precision, which is nearer to the truth than the reference."""

PROBLEM = "rotary_positions"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.arange(x.shape[1], dtype=torch.float64)
        angles = torch.outer(places, 10000.0 ** (-torch.arange(0, 32, 2, dtype=torch.float64) / 32))
        turns = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (16, 2)).contiguous()) * turns).flatten(-2)
