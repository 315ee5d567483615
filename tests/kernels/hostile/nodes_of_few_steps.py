"""8 of 40 steps: such a graph as is drawn is never wider."""

PROBLEM = "reached_nodes"
EXPECTED = "wrong_output"
GROUP = "S15 skipped work"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, edges, sources):
        near = edges.float()
        reached = sources
        distance = torch.where(sources > 0, 0.0, float(self.steps + 1))
        for step in range(1, 9):
            new = ((reached @ near) > 0).float()
            reached = torch.maximum(reached, new)
            distance = torch.where((reached > 0) & (distance > step), float(step), distance)
        return distance
