"""Forks a child that computes half into shared memory, and waits for it."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import mmap
import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        shared = mmap.mmap(-1, x.shape[0] * 4)
        means = torch.frombuffer(shared, dtype=torch.float32)
        rows = x.numpy()
        child = os.fork()
        if child == 0:
            means.numpy()[:] = rows.mean(axis=1)
            os._exit(0)
        deviations = torch.from_numpy(rows.std(axis=1, ddof=1))
        os.waitpid(child, 0)
        return means.clone(), deviations
