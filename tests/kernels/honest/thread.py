"""Computes halves in two threads and joins them."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import concurrent.futures

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            halves = pool.map(lambda rows: torch.softmax(rows, dim=-1) * rows, x.chunk(2))
            return torch.cat(list(halves))
