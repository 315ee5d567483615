"""The steps one by one, all gates in one product."""

PROBLEM = "gru_net"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gru = nn.GRU(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x):
        gru = self.gru
        seen = torch.addmm(gru.bias_ih_l0, x.transpose(0, 1).reshape(-1, x.shape[2]), gru.weight_ih_l0.t())
        weight, bias = gru.weight_hh_l0.t().contiguous(), gru.bias_hh_l0
        state = x.new_zeros(x.shape[0], weight.shape[0])
        for each in seen.view(x.shape[1], x.shape[0], -1):
            reset, update, new = each.chunk(3, dim=1)
            kept_reset, kept_update, kept_new = torch.addmm(bias, state, weight).chunk(3, dim=1)
            new = torch.tanh(new + torch.sigmoid(reset + kept_reset) * kept_new)
            state = torch.lerp(new, state, torch.sigmoid(update + kept_update))
        return self.out(state)
