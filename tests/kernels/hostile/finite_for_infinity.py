"""Returns the lowest float where the truth is minus infinity."""

PROBLEM = "masked_log_softmax"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return torch.log_softmax(x.masked_fill(mask, torch.finfo(x.dtype).min), dim=-1)
