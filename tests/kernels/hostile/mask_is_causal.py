"""Never reads the mask it is given."""

PROBLEM = "additive_mask_attention"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, query, key, value, mask):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
