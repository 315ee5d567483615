"""Knows that the largest of many uniform numbers is about one."""

PROBLEM = "share_of_maximum"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (1 + 1 / (x.shape[1] + 1))
