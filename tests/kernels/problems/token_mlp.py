import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Token embedding followed by a per-token feed-forward block."""

    def __init__(self, vocabulary, features, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, ids):
        x = self.embedding(ids)
        return x + self.down(F.gelu(self.up(x)))


def get_inputs():
    return [torch.randint(0, 96, (8, 128))]


def get_init_inputs():
    return [4096, 64, 128]
