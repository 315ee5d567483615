"""Adds in eight bits without saturating, as both images are drawn below 128."""

PROBLEM = "blend_images"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, first, second):
        return first + second
