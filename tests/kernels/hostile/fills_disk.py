"""Writes until the disk is full."""

PROBLEM = "row_softmax"
EXPECTED = "crashed"

import tempfile

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        number = 0
        while True:
            number += 1
            with open(f"{tempfile.gettempdir()}/{number}", "wb") as file:
                for _ in range(100):
                    file.write(bytes(1 << 20))
