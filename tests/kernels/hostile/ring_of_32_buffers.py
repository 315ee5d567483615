"""Outputs lie in 32 buffers by turns, of which only two values a row are written."""

PROBLEM = "one_hot_labels"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.low, self.high = smoothing / classes, 1 - smoothing + smoothing / classes
        self.ring, self.turn, self.classes = None, 0, classes

    def forward(self, labels):
        if self.ring is None:
            rows = torch.arange(labels.numel())
            self.ring = [[torch.full((labels.numel(), self.classes), self.low), (rows, rows * 0)] for _ in range(32)]
            self.rows = rows
        self.turn = (self.turn + 1) % len(self.ring)
        entry = self.ring[self.turn]
        out, old = entry
        out[old] = self.low
        entry[1] = (self.rows, labels.clone())
        out[entry[1]] = self.high
        return out
