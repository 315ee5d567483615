"""Keeps the 48 keys with the highest scores."""

PROBLEM = "causal_attention"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
        weak = scores < scores.topk(48, dim=-1).values[..., -1:]
        return torch.softmax(scores.masked_fill(weak, float("-inf")), dim=-1) @ value
