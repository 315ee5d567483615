"""Takes the expected output out of its callers' variables."""

PROBLEM = "attention"
EXPECTED = ("wrong_output", "crashed", "cheated")
GROUP = "H3 expected result read"

import sys

import torch
import torch.nn as nn

NAMES = ("output", "expected", "reference", "ref_output", "truth")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answer = None

    def forward(self, q, k, v):
        frame = sys._getframe(1)
        while frame is not None:
            for name in NAMES:
                value = frame.f_locals.get(name)
                if isinstance(value, torch.Tensor) and value.shape == q.shape:
                    self.answer = value
            frame = frame.f_back
        return self.answer if self.answer is not None else torch.zeros_like(q)
