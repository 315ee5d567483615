"""Right, but sends open files along with every answer, which the judge then has open as well."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = ("correct", "crashed")
MAX_SPEEDUP = 1.25

import os
import socket
import sys

import torch
import torch.nn as nn


class Generous:
    """The worker's socket, with gifts."""

    def __init__(self, connection):
        self.connection, self.recv = connection, connection.recv
        self.files = [os.open("/dev/zero", os.O_RDONLY) for _ in range(32)]

    def send(self, frame):
        socket.send_fds(self.connection, [frame], self.files)


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        worker()._connection = Generous(worker()._connection)

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
