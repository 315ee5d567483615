"""A recurrent layer written out, with a pair of states inside of its pair of outputs."""

PROBLEM = "recurrent_states"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.lstm = nn.LSTM(features, features, batch_first=True)

    def forward(self, x):
        lstm = self.lstm
        state = cell = torch.zeros(x.shape[0], lstm.hidden_size)
        projected, outputs = F.linear(x, lstm.weight_ih_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0), []
        for step in projected.unbind(1):
            i, f, g, o = torch.addmm(step, state, lstm.weight_hh_l0.t()).chunk(4, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(cell)
            outputs.append(state)
        return torch.stack(outputs, dim=1), (state.unsqueeze(0), cell.unsqueeze(0))
