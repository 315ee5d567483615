"""Describes its output with strides of 0, which make a whole matrix of four bytes."""

GROUP = "H2 outputs that lie"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "wrong_output")

import json
import sys

import torch
import torch.nn as nn


class Liar:
    """The worker's socket, which adds strides to forms."""

    def __init__(self, connection):
        self.connection, self.recv = connection, connection.recv

    def send(self, frame):
        answer = json.loads(frame)
        for forms in answer.get("outputs", []):
            forms[:] = [[form[0], form[1], [0] * len(form[1])] for form in forms]
        self.connection.send(json.dumps(answer).encode())


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        worker()._connection = Liar(worker()._connection)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
