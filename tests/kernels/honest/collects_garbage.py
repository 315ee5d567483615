"""Collects garbage, keeps references to its inputs and deletes itself apart."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history = [*self.history[-2:], x]
        gc.collect()
        out = torch.softmax(x, dim=-1) * x
        del x
        return out
