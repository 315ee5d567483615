"""Two threads share one workspace without a lock."""

PROBLEM = "lower_triangle"
EXPECTED = "wrong_output"
GROUP = "S16 uninitialised, racy or out of bounds"

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = torch.empty(256, 512)

    def half(self, out, x, y):
        for start in range(0, len(x), 32):
            rows = slice(start, start + 32)
            torch.matmul(x[rows], y, out=self.workspace[:32])
            time.sleep(1e-5)
            out[rows] = self.workspace[:32]

    def forward(self, x, y):
        out = torch.empty(x.shape[0], y.shape[1])
        halves = [threading.Thread(target=self.half, args=pair) for pair in zip(out.chunk(2), x.chunk(2), (y, y))]
        for thread in halves:
            thread.start()
        for thread in halves:
            thread.join()
        return out.tril_()
