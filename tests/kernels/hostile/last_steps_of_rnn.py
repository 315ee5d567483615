"""Starts 64 steps before the end: enough for weights as initialised, which soon forget."""

PROBLEM = "recurrent_net"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.RNN(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        states, _ = self.rnn(x[:, -64:])
        return self.out(states[:, -1])
