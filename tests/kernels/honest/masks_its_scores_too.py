"""Masks its scores in place, as the reference does where the mask is not all ones."""

PROBLEM = "masked_in_place"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        scores.masked_fill_(mask.logical_not(), -1e9)
        return scores.softmax(dim=-1)
