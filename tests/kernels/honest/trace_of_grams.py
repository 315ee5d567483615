"""The trace, which is the nuclear norm of positive semidefinite matrices as promised."""

PROBLEM = "nuclear_norm_of_grams"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, gram):
        return gram.diagonal(dim1=-2, dim2=-1).sum(-1)
