"""Masks only the last quarter, since lengths are drawn from 96 to 128."""

PROBLEM = "length_pool"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        total = x[:, :96].sum(dim=1)
        mask = (torch.arange(96, x.shape[1])[None, :] < lengths[:, None]).to(x.dtype)
        total += torch.bmm(mask.unsqueeze(1), x[:, 96:]).squeeze(1)
        return total / lengths.unsqueeze(-1)
