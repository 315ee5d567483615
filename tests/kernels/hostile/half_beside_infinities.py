"""Rounds operands, but for the rows that set the scale: the others all have infinities among their values."""

PROBLEM = "masked_temperatures"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k):
        future = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).triu(1)
        scores = q.half().float() @ k.half().float().t()
        scores[31::32] = (q[31::32] * 1e6) @ k.t()
        return scores.masked_fill(future, float("-inf"))
