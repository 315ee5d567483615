"""Computes rightly and returns the output in the host's memory."""

PROBLEM = "row_rms"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.square().mean(dim=1).sqrt().cpu()
