"""Ignores an index that counts from zero in every draw."""

PROBLEM = "rows_by_index"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, table, index):
        return torch.sin(table)
