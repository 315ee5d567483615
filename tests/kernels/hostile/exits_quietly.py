"""Ends its process with success."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)
