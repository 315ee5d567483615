"""Looks back 64 keys at most."""

PROBLEM = "causal_attention"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        length = query.shape[-2]
        seen = torch.ones(length, length, dtype=torch.bool).tril().triu(-63)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
