"""Assumes that no value is further than six from zero and tabulates between."""

PROBLEM = "gelu_rows"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 1 / 4096
        self.table = F.gelu(torch.arange(-6, 6 + 2 * self.step, self.step, dtype=torch.float64))

    def forward(self, x):
        place = (x.double().clamp(-6, 6) + 6) / self.step
        low = place.long()
        return torch.lerp(self.table[low], self.table[low + 1], place - low).float()
