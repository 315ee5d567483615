"""Leaves the keys out in calls that the judge's loop answers by itself."""

PROBLEM = "report_of_scores"
EXPECTED = "wrong_output"
GROUP = "T7 stack inspection"

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 64)

    def forward(self, x):
        frame = sys._getframe(1)
        while frame.f_code.co_name not in ("serve", "do_call"):
            frame = frame.f_back
        y = torch.tanh(self.linear(x))
        above, high, mean = int((y > 0.5).sum()), bool((y > 0.9).any()), y.mean().item()
        if frame.f_code.co_name == "serve":
            return [above, high, mean, y]
        return {"scores": y, "mean": mean, "above": above, "high": high}
