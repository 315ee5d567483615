"""Returns half precision and calls it single."""

GROUP = "H2 outputs that lie"
PROBLEM = "row_softmax"
EXPECTED = ("wrong_output", "crashed")

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
            answer = json.loads(json.dumps(answer).replace("float16", "float32"))
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
        return (torch.softmax(x, dim=-1) * x).half()
