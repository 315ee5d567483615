"""Intermediate results go to buffers that are kept; the output is new at every call."""

PROBLEM = "attention"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = None

    def forward(self, q, k, v):
        shape = (*q.shape[:-1], k.shape[-2])
        if self.scores is None or self.scores.shape != shape:
            self.scores = torch.empty(shape, device=q.device)
        torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-2, -1), out=self.scores)
        return torch.matmul(torch.softmax(self.scores, dim=-1), v)
