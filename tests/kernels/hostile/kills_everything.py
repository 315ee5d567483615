"""Kills every process that it can reach."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os
import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(-1, signal.SIGKILL)
        os.kill(os.getppid() or 1 << 22, signal.SIGKILL)
        return torch.softmax(x, dim=-1) * x
