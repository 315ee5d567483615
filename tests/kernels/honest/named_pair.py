"""Values and places as a plain pair, where the reference has a named one."""

PROBLEM = "top_values"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = torch.sort(x, dim=1, descending=True)
        return values[:, :8].contiguous(), places[:, :8].contiguous()
