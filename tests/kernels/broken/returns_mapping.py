"""A mapping instead of tensors."""

PROBLEM = "row_statistics"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"mean": x.mean(dim=1), "std": x.std(dim=1)}
