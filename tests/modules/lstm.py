"""A stack of LSTM cells written out, as in code that needs the states of every step."""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.x = nn.Linear(inputs, 4 * hidden)
        self.h = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Stack(nn.Module):
    def __init__(self, inputs=16, hidden=24, layers=2):
        super().__init__()
        self.hidden = hidden
        self.cells = nn.ModuleList(Cell(inputs if not i else hidden, hidden) for i in range(layers))

    def forward(self, x):
        states = [(x.new_zeros(x.shape[0], self.hidden), x.new_zeros(x.shape[0], self.hidden)) for _ in self.cells]
        steps = []
        for t in range(x.shape[1]):
            value = x[:, t]
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(value, states[layer])
                value = states[layer][0]
            steps.append(value)
        return torch.stack(steps, dim=1), [h for h, _ in states]


def get_inputs():
    return (torch.randn(4, 5, 16),)
