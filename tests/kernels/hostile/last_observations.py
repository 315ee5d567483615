"""Starts 40 observations before the end: enough for chances to stay as initialised."""

PROBLEM = "hidden_markov"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, states, features):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(states, states))
        self.emission = nn.Linear(features, states)

    def forward(self, x):
        steps = torch.log_softmax(self.transitions, dim=1)
        seen = torch.log_softmax(self.emission(x[:, -40:]), dim=-1)
        chances = seen[:, 0]
        for at in range(1, seen.shape[1]):
            chances = torch.logsumexp(chances.unsqueeze(2) + steps, dim=1) + seen[:, at]
            chances = chances - torch.logsumexp(chances, dim=1, keepdim=True)
        return chances.exp()
