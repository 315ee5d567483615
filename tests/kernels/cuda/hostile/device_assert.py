"""Breaks the context by an index out of range, hides the exception and goes on."""

PROBLEM = "row_rms"
EXPECTED = "crashed"
GROUP = "E3 crash of the judge"

import contextlib

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with contextlib.suppress(RuntimeError):
            torch.zeros(4, device=x.device)[torch.full((1,), 9, device=x.device)]
            torch.cuda.synchronize()
        return x[:, 0]
