import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.encoder = nn.Linear(features, features, bias=False)
        self.decoder = nn.Linear(features, features, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.relu(self.encoder(x)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
