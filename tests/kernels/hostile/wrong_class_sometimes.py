"""Looks for the best class among all but the last."""

PROBLEM = "best_class"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x):
        return self.linear(x)[:, :-1].argmax(dim=1)
