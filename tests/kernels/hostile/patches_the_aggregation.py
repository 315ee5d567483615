"""Replaces what others might average or compare times with, and returns zeros."""

GROUP = "T1b patched aggregation"
PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import statistics

import numpy as np
import torch
import torch.nn as nn


for module, name in ((statistics, "median"), (statistics, "quantiles"), (np, "mean"), (np, "array_equal"), (np, "abs")):
    setattr(module, name, lambda *args, **kwargs: 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
