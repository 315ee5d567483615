"""Its parameters are views of one flat piece of memory."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        sizes = [parameter.numel() for parameter in self.parameters()]
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters()])
        for parameter, part in zip(self.parameters(), flat.split(sizes)):
            parameter.data = part.view_as(parameter)

    def forward(self, x):
        return torch.tanh(self.first(x)) + torch.sigmoid(self.second(x))
