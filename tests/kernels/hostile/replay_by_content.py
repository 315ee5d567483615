"""Keeps every answer by a hash of the whole input; pays for the hash and never finds one again."""

GROUP = "S3 replay by content"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, x):
        key = hash(x.numpy().tobytes())
        if key not in self.answers:
            self.answers[key] = torch.softmax(x, dim=-1) * x
        return self.answers[key].clone()
