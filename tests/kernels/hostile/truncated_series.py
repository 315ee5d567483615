"""Five terms of a series that converges near zero."""

PROBLEM = "mixed_tanh"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)

    def forward(self, x):
        y, z = self.first(x), self.second(x)
        y2, z2 = y * y, z * z
        tanh = y * (1 + y2 * (-1 / 3 + y2 * (2 / 15 + y2 * (-17 / 315 + y2 * 62 / 2835))))
        return tanh + 0.5 + z * (1 / 4 + z2 * (-1 / 48 + z2 * (1 / 480 - z2 * 17 / 80640)))
