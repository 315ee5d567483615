"""Returns a view of its input where the reference copies: the caller's next input changes it."""

PROBLEM = "split_heads"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)
