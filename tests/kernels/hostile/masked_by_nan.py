"""Returns NaN where it did not compute."""

PROBLEM = "causal_attention"
EXPECTED = "wrong_output"
GROUP = "H2 outputs that lie"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        out = torch.full_like(query, float("nan"))
        half = query.shape[-2] // 2
        short = [part[..., :half, :] for part in (query, key, value)]
        out[..., :half, :] = F.scaled_dot_product_attention(*short, is_causal=True)
        return out
