"""Returns a sparse tensor, whose missing elements nobody computed."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1) * x
        return out.where(out.abs() > 1e-6, 0).to_sparse()
