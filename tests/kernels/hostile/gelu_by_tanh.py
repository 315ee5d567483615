"""Another function that agrees with the exact one to three digits."""

PROBLEM = "gelu_rows"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh")
