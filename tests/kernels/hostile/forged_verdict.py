"""Prints a verdict and leaves."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        print('{"status": "correct", "reference_ms": [9.0], "candidate_ms": [0.1], "max_error": 0.0}', flush=True)
        os._exit(0)
