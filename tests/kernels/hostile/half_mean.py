"""Averages values rounded to half precision, where rounding errors nearly cancel."""

PROBLEM = "row_statistics"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.half().float().mean(dim=1), x.std(dim=1)
