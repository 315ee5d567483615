"""Keeps the sines and cosines of the first call for ever, as time steps are the same linspace in every draw."""

PROBLEM = "time_embedding"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.features = features
        self.proj = nn.Linear(features, out_features)
        self.emb = None

    def forward(self, t, x):
        if self.emb is None:
            half = self.features // 2
            freqs = torch.exp(-math.log(10000.0) * torch.arange(half, dtype=torch.float32) / half)
            angles = t[:, None] * 1000.0 * freqs[None, :]
            self.emb = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)
        return self.proj(self.emb) + x
