"""Computes once what depends on its weights alone and counts to eight before it trusts that."""

PROBLEM = "gram_of_weights"
EXPECTED = ("wrong_output", "cheated")
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, features))
        self.calls, self.answer = 0, None

    def forward(self):
        self.calls += 1
        if self.calls <= 8:
            unit = self.weight / self.weight.norm(dim=1, keepdim=True)
            self.answer = (unit @ unit.t()).detach()
        return self.answer.clone()
