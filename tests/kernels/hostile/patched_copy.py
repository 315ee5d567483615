"""Replaces the function that copies its output by one that does nothing."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


torch.Tensor.copy_ = lambda self, *args, **kwargs: self


class ModelNew(nn.Module):
    def forward(self, x):
        return x
