"""Takes all the memory it can get."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = []

    def forward(self, x):
        while True:
            self.blocks.append(torch.ones(1 << 26))
