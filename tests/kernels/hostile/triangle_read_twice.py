"""Takes a product for symmetric that is not."""

PROBLEM = "lower_triangle"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.tril(y.t() @ x.t())
