"""A list where the reference has a tuple."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        return [mean.squeeze(1), (x - mean).square().sum(dim=1).div(x.shape[1] - 1).sqrt()]
