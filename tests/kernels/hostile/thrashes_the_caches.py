"""Right, but goes over 64 MiB after every answer, so that whoever is next starts with cold caches."""

GROUP = "T9 slowed reference"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import sys

import torch
import torch.nn as nn


class Thrasher:
    """The worker's socket, which dirties the caches when an answer is out."""

    def __init__(self, connection):
        self.connection, self.recv, self.dirt = connection, connection.recv, torch.zeros(16 << 20)

    def send(self, frame):
        self.connection.send(frame)
        self.dirt.add_(1)


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        worker()._connection = Thrasher(worker()._connection)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
