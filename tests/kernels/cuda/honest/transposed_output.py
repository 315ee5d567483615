"""Multiplies the transposed matrices and returns a transposed view."""

PROBLEM = "matmul"
EXPECTED = "correct"
TRACK = "framework"

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (b.t() @ a.t()).t()
