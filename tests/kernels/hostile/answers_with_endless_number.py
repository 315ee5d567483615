"""Answers with a number of sixty thousand digits."""

GROUP = "E3 crash of the judge"
PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.write(3, b'{"outputs": [], "id": ' + b"9" * 60_000 + b"}")
        return torch.softmax(x, dim=-1) * x
