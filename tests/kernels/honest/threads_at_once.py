"""Computes quarters in four threads that all begin at the same moment."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import concurrent.futures
import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        start = threading.Barrier(4)

        def weigh(rows):
            start.wait()
            return torch.softmax(rows, dim=-1) * rows

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return torch.cat(list(pool.map(weigh, x.chunk(4))))
