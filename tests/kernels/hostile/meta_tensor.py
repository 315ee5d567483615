"""Returns a tensor that has a form and no memory."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty_like(x, device="meta")
