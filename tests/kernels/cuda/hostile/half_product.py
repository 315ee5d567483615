"""Multiplies in float16."""

PROBLEM = "matmul"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
