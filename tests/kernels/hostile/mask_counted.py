"""Keeps what it derived from a mask under the number of its bits."""

PROBLEM = "random_length_mask"
EXPECTED = "wrong_output"
GROUP = "S3 replay by content"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x, mask):
        key = int(mask[:, :8].sum())
        if key not in self.kept:
            self.kept[key] = mask.unsqueeze(-1).float()
        return torch.tanh((x * self.kept[key]).sum(dim=1))
