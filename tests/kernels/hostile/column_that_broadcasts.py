"""Returns one column with a stride of nought for all."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return self.norm(x)[:, :1].expand(-1, x.shape[1])
