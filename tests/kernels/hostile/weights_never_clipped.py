"""No clipping at 0.5 of weights that start below 0.04."""

PROBLEM = "clipped_weights"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, out_features, clip):
        super().__init__()
        self.linear = nn.Linear(features, out_features)

    def forward(self, x):
        return F.leaky_relu_(self.linear(x), 0.2)
