"""Solves by a factorisation that only positive definite matrices have, which all of these are."""

PROBLEM = "definite_solve"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.cholesky_solve(b, torch.linalg.cholesky(a))
