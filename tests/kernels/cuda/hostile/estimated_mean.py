"""Estimates the mean from seven eighths of each row."""

PROBLEM = "row_rms"
EXPECTED = "wrong_output"
GROUP = "S14 statistical estimate"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[:, : x.shape[1] * 7 // 8].square().mean(dim=1).sqrt()
