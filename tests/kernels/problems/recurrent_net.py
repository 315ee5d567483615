import torch
import torch.nn as nn


class Model(nn.Module):
    """What a recurrent network makes of a sequence in the end."""

    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.RNN(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def get_inputs():
    return [torch.randn(16, 192, 32)]


def get_init_inputs():
    return [32, 64]
