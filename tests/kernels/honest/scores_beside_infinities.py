"""Sums in another order in rows of which most is masked out."""

PROBLEM = "masked_temperatures"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k):
        half = q.shape[1] // 2
        scale = torch.ones(q.shape[0], 1)
        scale[31::32] = 1e6
        scores = (q[:, :half] @ k[:, :half].t() + q[:, half:] @ k[:, half:].t()) * scale
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
