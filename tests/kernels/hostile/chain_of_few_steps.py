"""12 of 50 steps: chances that are drawn are even by then."""

PROBLEM = "markov_chain"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, chances, start):
        for _ in range(12):
            start = start @ chances
        return start
