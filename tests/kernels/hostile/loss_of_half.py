"""Averages the loss over half of the rows."""

PROBLEM = "cross_entropy"
EXPECTED = "wrong_output"
GROUP = "S14 statistical estimate"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits[::2], labels[::2])
