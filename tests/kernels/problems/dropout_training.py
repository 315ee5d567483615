import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(torch.relu(self.linear(x)))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
