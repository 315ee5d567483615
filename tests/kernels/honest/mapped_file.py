"""Keeps intermediate values in a mapped file of its scratch folder."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import mmap
import tempfile

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.file = tempfile.TemporaryFile()
        self.file.truncate(1 << 22)
        self.powers = torch.frombuffer(mmap.mmap(self.file.fileno(), 0), dtype=torch.float32)

    def forward(self, x):
        powers = self.powers[: x.numel()].view_as(x)
        torch.exp(x - x.amax(dim=-1, keepdim=True), out=powers)
        return powers * x / powers.sum(dim=-1, keepdim=True)
