"""Joins its weights when it is built and whenever a state is loaded."""

PROBLEM = "mixed_tanh"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        self.join()
        self.register_load_state_dict_post_hook(lambda module, _: module.join())

    def join(self):
        self.weight = torch.cat([self.first.weight, self.second.weight]).detach().t().contiguous()
        self.bias = torch.cat([self.first.bias, self.second.bias]).detach()

    def forward(self, x):
        first, second = torch.addmm(self.bias, x, self.weight).chunk(2, dim=1)
        return torch.tanh(first) + torch.sigmoid(second)
