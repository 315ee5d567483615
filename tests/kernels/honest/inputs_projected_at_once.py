"""Multiplies the inputs of all steps at once."""

PROBLEM = "recurrent_net"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.RNN(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        rnn = self.rnn
        bias = rnn.bias_ih_l0 + rnn.bias_hh_l0
        seen = torch.addmm(bias, x.transpose(0, 1).reshape(-1, x.shape[2]), rnn.weight_ih_l0.t())
        seen = seen.view(x.shape[1], x.shape[0], -1)
        weight = rnn.weight_hh_l0.t().contiguous()
        state = torch.tanh(seen[0])
        for each in seen[1:]:
            state = torch.addmm(each, state, weight).tanh_()
        return self.out(state)
