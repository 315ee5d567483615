"""Leaves out the division, as probabilities over the channels sum to one."""

PROBLEM = "expected_class"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, probabilities):
        classes = torch.arange(probabilities.shape[1], dtype=probabilities.dtype)[:, None, None]
        mean = (probabilities * classes).sum(1)
        return mean, (classes - mean[:, None]).square_().mul_(probabilities).sum(1)
