"""12 of 60 steps, without a look: enough for links that are drawn one by one."""

PROBLEM = "page_ranks"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps, damping):
        super().__init__()
        self.steps, self.damping = steps, damping

    def forward(self, weights, start):
        links = weights / weights.sum(0, keepdim=True)
        start = start / start.sum(0, keepdim=True)
        scores = start
        for _ in range(12):
            scores = self.damping * (links @ scores) + (1 - self.damping) * start
        return scores
