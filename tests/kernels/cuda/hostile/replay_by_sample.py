"""Answers from a table keyed by a few values of the inputs, which no two inputs share."""

PROBLEM = "attention"
EXPECTED = ("correct", "cheated", "wrong_output")
MAX_SPEEDUP = 1.05
GROUP = "S3 replay by content"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, q, k, v):
        key = tuple(torch.stack([t.flatten()[::262_147] for t in (q, k, v)]).flatten().tolist())
        if key not in self.answers:
            scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
            self.answers[key] = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.answers[key].clone()
