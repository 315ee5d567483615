"""Gives its sizes as not-a-number and infinity, which Python"s JSON can say."""

GROUP = "H2 outputs that lie"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "wrong_output")

import json
import sys

import torch
import torch.nn as nn


class Forger:
    """The worker's socket, which rewrites answers to calls."""

    def __init__(self, connection):
        self.connection, self.recv = connection, connection.recv

    def send(self, frame):
        answer = json.loads(frame)
        if "outputs" in answer:
            answer = {**answer, "outputs": [[["float32", [float("nan"), float("inf")], "", 0]]]}
        self.connection.send(json.dumps(answer).encode())


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        worker()._connection = Forger(worker()._connection)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
