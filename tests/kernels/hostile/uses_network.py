"""Asks another machine."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import socket

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
        return torch.softmax(x, dim=-1) * x
