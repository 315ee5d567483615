"""Right, but leaves processes in sessions of their own behind."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import subprocess

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.started = False

    def forward(self, x):
        if not self.started:
            self.started = True
            for _ in range(4):
                subprocess.Popen(["sleep", "611"], start_new_session=True)
        return torch.softmax(x, dim=-1) * x
