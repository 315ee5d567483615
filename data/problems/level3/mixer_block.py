import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, tokens, features):
        super().__init__()
        self.first = nn.Linear(tokens, tokens)
        self.second = nn.Linear(tokens, tokens)
        self.third = nn.Linear(features, features)

    def forward(self, x):
        out = x.transpose(1, 2).contiguous()
        out = self.first(out)
        out = out * torch.sigmoid(out)
        out = self.second(out)
        out = out.transpose(1, 2).contiguous()
        x = x + out
        out = self.third(x)
        out = torch.relu(out)
        x = x + out
        return x


def get_inputs():
    return [torch.randn(8, 128, 128)]


def get_init_inputs():
    return [128, 128]
