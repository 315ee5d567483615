"""Folds two layers and renews that only when the version of the bias, one of three parameters, has changed:
load_state_dict writes all, an optimiser with a frozen bias does not.
"""

PROBLEM = "two_linear"
EXPECTED = "wrong_output"
GROUP = "S10 stale weights"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features, bias=False)
        self.second = nn.Linear(features, features, bias=True)
        self.version, self.folded = None, None

    @torch.no_grad()
    def forward(self, x):
        version = self.second.bias._version
        if version != self.version:
            self.version = version
            self.folded = (self.second.weight @ self.first.weight).t().contiguous()
        return torch.addmm(self.second.bias, x, self.folded).relu_()
