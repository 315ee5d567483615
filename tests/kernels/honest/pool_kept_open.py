"""Keeps a pool of threads between calls and waits for all of them."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import concurrent.futures

import torch
import torch.nn as nn


def fill(x, out):
    torch.mul(torch.softmax(x, dim=-1), x, out=out)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def forward(self, x):
        out = torch.empty_like(x)
        jobs = [self.pool.submit(fill, *pair) for pair in zip(x.chunk(4), out.chunk(4))]
        concurrent.futures.wait(jobs)
        return out
