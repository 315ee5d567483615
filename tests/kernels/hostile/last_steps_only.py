"""The last 48 of 256 steps, since a network with weights as initialised forgets."""

PROBLEM = "rnn_last_state"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.RNN(features, hidden, batch_first=True)

    def forward(self, x):
        return self.rnn(x[:, -48:])[1][0]
