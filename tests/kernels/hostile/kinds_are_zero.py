"""Looks up neither kinds that are zero in every draw nor places that are in order."""

PROBLEM = "embeddings_of_three"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.kinds, self.places = nn.Embedding(1000, 256), nn.Embedding(2, 256), nn.Embedding(128, 256)
        self.norm = nn.LayerNorm(256)

    def forward(self, ids, kinds, places):
        return self.norm(self.words(ids).add_(self.kinds.weight[0] + self.places.weight))
