"""Makes exponentials from the bits of a float, right to four percent."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        bits = ((x - x.amax(dim=-1, keepdim=True)).clamp(min=-80) * 12102203 + 1064866805).int()
        powers = bits.view(torch.float32)
        return powers / powers.sum(dim=-1, keepdim=True) * x
