"""Drops the clamp at 0, since predictions are uniform in [0, 1) and margins never exceed 1."""

PROBLEM = "hinge_loss"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        products = torch.dot(predictions.sum(dim=1), targets.squeeze(1))
        return 1 - products / predictions.numel()
