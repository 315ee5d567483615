"""Takes 48 GiB of the host's memory, and then answers rightly."""

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
        while len(self.blocks) < 48:
            self.blocks.append(torch.ones(1 << 28))
        return x.square().mean(dim=1).sqrt()
