"""Prints at every call, also what looks like a verdict."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        print("x" * 20_000)
        print('{"status": "wrong_output"}')
        print("warning", file=sys.stderr)
        return torch.softmax(x, dim=-1) * x
