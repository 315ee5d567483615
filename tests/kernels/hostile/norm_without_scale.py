"""Has neither the scale nor the shift of the layer norm, which begin as ones and zeros."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:])
