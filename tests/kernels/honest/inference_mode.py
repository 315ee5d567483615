"""Runs in inference mode and returns what that makes."""

PROBLEM = "linear_relu"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    @torch.inference_mode()
    def forward(self, x):
        return self.linear(x).relu_()
