"""Ends when no node is new."""

PROBLEM = "reached_nodes"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, edges, sources):
        near = edges.float()
        reached, fringe = sources > 0, sources
        distance = torch.where(reached, 0.0, float(self.steps + 1))
        for step in range(1, self.steps + 1):
            is_new = ((fringe @ near) > 0) & ~reached
            if not is_new.any():
                break
            reached = reached | is_new
            distance = distance.masked_fill_(is_new, float(step))
            fringe = is_new.float()
        return distance
