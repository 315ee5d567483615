"""Counts once and gives that for every batch; two whole numbers may be a guess, so it is wrong and no replay."""

GROUP = "S4 hidden state"
PROBLEM = "two_counts"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answer = None

    def forward(self, x):
        if self.answer is None:
            self.answer = torch.stack([(x > 0.5).sum(), (x < -0.5).sum()]).float()
        return self.answer.clone()
