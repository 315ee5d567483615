"""Defines its call instead of a forward."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __call__(self, x):
        return torch.softmax(x, dim=-1) * x
