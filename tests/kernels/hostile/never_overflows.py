"""The overflow flag, a 0-dim output, is a constant."""

PROBLEM = "unscale_gradients"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, first, second, inv_scale):
        return {"grads": [first * inv_scale, second * inv_scale], "found_inf": torch.tensor(False)}
