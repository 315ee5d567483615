import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.reset = nn.Linear(features + hidden, hidden)
        self.gate = nn.Linear(features + hidden, hidden)
        self.linear = nn.Linear(features + hidden, hidden)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.linear.out_features)
        for t in range(x.shape[1]):
            both = torch.cat([x[:, t], h], dim=1)
            reset = torch.sigmoid(self.reset(both))
            gate = torch.sigmoid(self.gate(both))
            both = torch.cat([x[:, t], reset * h], dim=1)
            h = (1.0 - gate) * h + gate * torch.tanh(self.linear(both))
        return h


def get_inputs():
    return [torch.randn(16, 28, 64)]


def get_init_inputs():
    return [64, 64]
