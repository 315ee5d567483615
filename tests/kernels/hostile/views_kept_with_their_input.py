"""Keeps views with their input for when it comes again; if it never does, that takes longer than finding them."""

PROBLEM = "strips_of_patches"
EXPECTED = "correct"
MAX_SPEEDUP = 1.4
GROUP = "S4 hidden state"

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        try:
            one, other = self.kept[id(x)][1]
        except KeyError:
            b, c, h, w = x.shape
            patches = x.view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5)
            one, other = patches.chunk(2, dim=3)
            one, other = one.transpose(-1, -2)[..., :2], other.transpose(-1, -2)[..., 2:]
            self.kept[id(x)] = x, (one, other)
        return one + other
