"""Right, but maps a file whose name is not text, which whoever reads its list of mappings stumbles over."""

GROUP = "E3 crash of the judge"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import mmap
import os

import torch
import torch.nn as nn


with open(b"\xff\xfe.so", "w+b") as file:
    os.ftruncate(file.fileno(), 4096)
    MAPPED = mmap.mmap(file.fileno(), 4096)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
