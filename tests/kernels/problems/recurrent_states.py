import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.lstm = nn.LSTM(features, features, batch_first=True)

    def forward(self, x):
        return self.lstm(x)


def get_inputs():
    return [torch.randn(8, 16, 32)]


def get_init_inputs():
    return [32]
