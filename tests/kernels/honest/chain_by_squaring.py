"""The power first, by squaring."""

PROBLEM = "markov_chain"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, chances, start):
        return start @ torch.linalg.matrix_power(chances, self.steps)
