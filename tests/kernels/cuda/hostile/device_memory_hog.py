"""Takes the device's memory until there is no more."""

PROBLEM = "row_rms"
EXPECTED = "crashed"
GROUP = "E6 exhausted resources"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = []

    def forward(self, x):
        while True:
            self.blocks.append(torch.empty(1 << 28, device=x.device))
