"""Has a causal mask in a parameter that nobody trains, and lets a library mask instead."""

PROBLEM = "frozen_mask"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, length):
        super().__init__()
        self.queries = nn.Linear(features, features)
        self.keys = nn.Linear(features, features)
        self.mask = nn.Parameter(torch.ones(length, length).tril(), requires_grad=False)

    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.queries(x), self.keys(x), x, is_causal=True
        )
