"""Ends when nothing changes any more."""

PROBLEM = "page_ranks"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps, damping):
        super().__init__()
        self.steps, self.damping = steps, damping

    def forward(self, weights, start):
        links = self.damping * weights / weights.sum(0, keepdim=True)
        start = start / start.sum(0, keepdim=True)
        teleport = (1 - self.damping) * start
        scores = start
        for _ in range(self.steps):
            new = torch.addmm(teleport, links, scores)
            if torch.dist(new, scores) <= 1e-7 * torch.linalg.vector_norm(new):
                return new
            scores = new
        return scores
