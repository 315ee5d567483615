"""Drops the tenth of the singular values that matter least."""

PROBLEM = "tied_autoencoder"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.encoder = nn.Linear(features, features, bias=False)
        self.decoder = nn.Linear(features, features, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        left, values, right = torch.linalg.svd(self.encoder.weight)
        rank = len(values) * 9 // 10
        low, high = left[:, :rank] * values[:rank], right[:rank]
        return torch.relu(x @ high.t() @ low.t()) @ high.t() @ low.t()
