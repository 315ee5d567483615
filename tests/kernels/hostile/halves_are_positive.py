"""Doubles numbers of half precision, which is right for none below zero."""

PROBLEM = "positive_halves"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x + x
