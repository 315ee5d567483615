"""Works on all inputs of an exchange at its first call, in one kernel, and looks the others up."""

GROUP = "T4 cross-call batching"
PROBLEM = "product_of_weights"
EXPECTED = ("correct", "cheated", "wrong_output")
MAX_SPEEDUP = 1.25

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Parameter(torch.randn(features, features) / features**0.5)
        self.second = nn.Parameter(torch.randn(features, features) / features**0.5)
        self.ready = {}

    def forward(self, x):
        frame = sys._getframe()
        while frame.f_code.co_name not in ("serve", "do_call"):
            frame = frame.f_back
        worker, slot, count, at = (frame.f_locals[name] for name in ("self", "slot", "count", "at"))
        if at == slot:
            slots = range(slot, slot + count)
            rows = [worker._objects[each][0] for each in slots]
            answers = torch.cat(rows) @ (self.first @ self.second)
            self.ready = dict(zip(slots, answers.split(len(x)), strict=True))
        return self.ready[at]
