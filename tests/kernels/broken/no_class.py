"""Defines something else."""

PROBLEM = "row_softmax"
EXPECTED = "rejected"

import torch


def forward(x):
    return torch.softmax(x, dim=-1) * x
