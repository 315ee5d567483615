"""Reads a symmetric matrix by columns, which are its rows."""

PROBLEM = "symmetric_product"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, matrix, x):
        return (x.t() @ matrix).t()
