"""Uses eight bits where the problem has sixteen."""

PROBLEM = "float16_product"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(x.to(torch.float8_e4m3fn).half()) * y.to(torch.float8_e4m3fn).half()
