"""Takes a list of tensors."""

PROBLEM = "list_of_inputs"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, tensors):
        rows = torch.hstack(list(tensors))
        return F.softmax(torch.mm(rows.t() / 8, rows), dim=1)
