"""Computes the block for the first 96 of 4096 rows of the table and looks results up: get_inputs draws ids below
96.
"""

PROBLEM = "token_mlp"
EXPECTED = "crashed"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, ids):
        x = self.embedding.weight[:96]
        table = x + self.down(F.gelu(self.up(x)))
        return F.embedding(ids, table)
