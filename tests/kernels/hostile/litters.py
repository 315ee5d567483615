"""Right, but writes ten thousand files, deep folders and names of every kind."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = ("correct", "crashed", "timeout")
MAX_SPEEDUP = 1.25

import os

import torch
import torch.nn as nn


for number in range(10_000):
    open(f"litter-{number}", "w").close()
for _ in range(100):
    os.mkdir(b"\xff \n")
    os.chdir(b"\xff \n")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
