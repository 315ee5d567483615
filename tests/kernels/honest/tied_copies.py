"""Two parameters where the reference ties them: equal states keep them equal."""

PROBLEM = "tied_autoencoder"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.encoder = nn.Linear(features, features, bias=False)
        self.decoder = nn.Linear(features, features, bias=False)
        self.decoder.weight = nn.Parameter(self.encoder.weight.detach().clone())

    def forward(self, x):
        return self.decoder(self.encoder(x).relu_())
