"""Leaves by SystemExit."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)
