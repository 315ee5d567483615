"""Ties its weights and works in place between them."""

PROBLEM = "tied_autoencoder"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.encoder = nn.Linear(features, features, bias=False)
        self.decoder = nn.Linear(features, features, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(self.encoder(x).relu_())
