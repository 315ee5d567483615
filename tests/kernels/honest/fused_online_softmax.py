"""Attention over blocks of keys with a running maximum."""

PROBLEM = "causal_attention"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        length, width = query.shape[-2:]
        top = torch.full((*query.shape[:-1], 1), float("-inf"))
        total, out = torch.zeros_like(top), torch.zeros_like(query)
        places = torch.arange(length)
        for start in range(0, length, 32):
            block = slice(start, start + 32)
            scores = query @ key[..., block, :].transpose(-2, -1) / width**0.5
            scores = scores.masked_fill(places[block] > places[:, None], float("-inf"))
            new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
            shares, decay = torch.exp(scores - new_top), torch.exp(top - new_top)
            total = total * decay + shares.sum(dim=-1, keepdim=True)
            out, top = out * decay + shares @ value[..., block, :], new_top
        return out / total
