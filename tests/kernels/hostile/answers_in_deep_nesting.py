"""Answers with lists in lists, a hundred thousand deep."""

GROUP = "E3 crash of the judge"
PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.write(3, b'{"id": 1, "outputs": ' + b"[" * 60_000)
        return torch.softmax(x, dim=-1) * x
