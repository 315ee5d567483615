"""Prints zeros and broken characters, which become part of the detail, and dies."""

GROUP = "H8 forged results"
PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.write(1, b"\0\xed\xa0\x80\xff\x1b[2J\x1b]0;title\x07" * 50)
        os._exit(1)
