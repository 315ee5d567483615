"""The two products of a recurrence as one, into the state at once."""

PROBLEM = "recurrence_in_place"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.inp = nn.Linear(features, features)
        self.rec = nn.Linear(features, features, bias=False)

    def forward(self, x, state):
        weight = torch.cat([self.inp.weight, self.rec.weight], 1)
        torch.addmm(self.inp.bias, torch.cat([x, state], 1), weight.t(), out=state)
        return state[:, :16].clone()
