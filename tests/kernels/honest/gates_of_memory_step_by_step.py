"""The steps one by one, all gates in one product."""

PROBLEM = "lstm_net"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        lstm = self.lstm
        bias = lstm.bias_ih_l0 + lstm.bias_hh_l0
        seen = torch.addmm(bias, x.transpose(0, 1).reshape(-1, x.shape[2]), lstm.weight_ih_l0.t())
        weight = lstm.weight_hh_l0.t().contiguous()
        state = memory = x.new_zeros(x.shape[0], weight.shape[0])
        for each in seen.view(x.shape[1], x.shape[0], -1):
            enter, keep, new, leave = torch.addmm(each, state, weight).chunk(4, dim=1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
            state = torch.sigmoid(leave) * torch.tanh(memory)
        return self.out(state)
