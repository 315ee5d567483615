"""Products of chances instead of sums of their logarithms."""

PROBLEM = "hidden_markov"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, states, features):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(states, states))
        self.emission = nn.Linear(features, states)

    def forward(self, x):
        steps = torch.softmax(self.transitions, dim=1)
        seen = self.emission(x)
        seen = (seen - seen.amax(-1, keepdim=True)).exp()
        chances = seen[:, 0]
        for at in range(1, x.shape[1]):
            chances = (chances @ steps) * seen[:, at]
            chances = chances / chances.sum(1, keepdim=True)
        return chances
