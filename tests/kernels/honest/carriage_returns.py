"""Lines that end as on Windows."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        note = """
        two lines
        """
        return torch.softmax(x, dim=-1) * x * bool(note)
