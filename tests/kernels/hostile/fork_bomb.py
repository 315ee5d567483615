"""Forks until it may not."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            if os.fork() == 0:
                time.sleep(600)
