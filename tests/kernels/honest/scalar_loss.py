"""A loss without dimensions, from the logarithms of its own sums."""

PROBLEM = "cross_entropy"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        top = logits.amax(dim=1)
        sums = (logits - top[:, None]).exp_().sum(dim=1).log_()
        return (sums + top - logits.gather(1, labels[:, None]).squeeze(1)).mean()
