"""Takes a float, an integer and None beside its tensor."""

PROBLEM = "tempered_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x, temperature, dim, mask):
        scores = x * (1 / temperature)
        return F.softmax(scores if mask is None else scores + mask, dim)
