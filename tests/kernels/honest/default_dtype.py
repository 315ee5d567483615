"""Works in double precision by changing the default for a while."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        weights = torch.full((x.shape[1],), 1 / x.shape[1])
        torch.set_default_dtype(torch.float32)
        x = x.double()
        mean = x @ weights
        return mean.float(), (x - mean[:, None]).square().sum(dim=1).div(x.shape[1] - 1).sqrt().float()
