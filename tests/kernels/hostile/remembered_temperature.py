"""Takes the temperature of the first call for that of all."""

PROBLEM = "tempered_softmax"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = None

    def forward(self, x, temperature, dim, mask):
        if self.temperature is None:
            self.temperature = temperature
        return torch.softmax(x / self.temperature, dim=dim)
