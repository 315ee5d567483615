"""Counts once and gives that number for every batch; one whole number may be a guess, so it is wrong, not a replay."""

GROUP = "S4 hidden state"
PROBLEM = "number_above"
EXPECTED = "wrong_output"

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answer = None

    def forward(self, x):
        if self.answer is None:
            self.answer = (x > 0.5).sum()
        return self.answer.clone()
