"""Assumes that no exponential overflows."""

PROBLEM = "row_logsumexp"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.exp().sum(dim=1).log()
