"""Imports the reference and hopes to be it."""

GROUP = "H6 use of the reference"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "compile_error")

import torch
import torch.nn as nn


from reference import Model


class ModelNew(Model):
    def forward(self, x):
        return super().forward(x)
