"""Shuts its end of the talk for reading, so that the judge cannot ask any more."""

GROUP = "E1 exit"
PROBLEM = "row_softmax"
EXPECTED = "crashed"

import socket

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        socket.socket(fileno=3).shutdown(socket.SHUT_RD)
        return torch.softmax(x, dim=-1) * x
