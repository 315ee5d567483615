"""Edits a file of the installed torch."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with open(torch.__file__, "a") as file:
            file.write("# edited")
        return torch.softmax(x, dim=-1) * x
