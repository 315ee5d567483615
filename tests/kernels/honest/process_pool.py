"""A pool of one process that lives as long as the model."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import concurrent.futures
import multiprocessing

import torch
import torch.nn as nn


def mean(rows):
    return rows.mean(axis=1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = None

    def forward(self, x):
        if self.pool is None:
            self.pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
        means = self.pool.submit(mean, x.numpy().copy())
        deviations = x.std(dim=1)
        return torch.from_numpy(means.result()), deviations
