"""Answers the next question together with this one, and has worked by the time that it is asked."""

GROUP = "T2 background work"
PROBLEM = "row_softmax"
EXPECTED = ("cheated", "wrong_output", "crashed")

import json
import sys

import torch
import torch.nn as nn


class Eager:
    """The worker's socket, one answer ahead."""

    def __init__(self, connection):
        self.connection, self.recv, self.is_ahead = connection, connection.recv, False

    def send(self, frame):
        answer = json.loads(frame)
        if not self.is_ahead:
            self.connection.send(frame)
        self.is_ahead = "outputs" in answer
        if self.is_ahead:
            self.connection.send(json.dumps({**answer, "id": answer["id"] + 1}).encode())


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        worker()._connection = Eager(worker()._connection)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
