"""Keeps a helper process that answers every request before the call returns."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import os
import socket

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pipe = None

    def forward(self, x):
        if self.pipe is None:
            self.pipe, other = socket.socketpair()
            if os.fork() == 0:
                while request := other.recv(1):
                    other.send(request)
                os._exit(0)
            other.close()
        self.pipe.send(b"x")
        out = x.mean(dim=1), x.std(dim=1)
        assert self.pipe.recv(1) == b"x"
        return out
