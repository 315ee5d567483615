"""Raises an exception whose text raises another."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import torch
import torch.nn as nn


class Hostile(BaseException):
    def __str__(self):
        raise Hostile

    __repr__ = __str__


class ModelNew(nn.Module):
    def forward(self, x):
        raise Hostile
