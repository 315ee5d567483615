"""A captured graph that copies its input in and its output out; weights are read where they lie."""

PROBLEM = "linear_gelu"
EXPECTED = "correct"
TRACK = "graph"

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.graph = None

    def capture(self, x):
        self.x = x.clone()
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(3):
                F.gelu(self.linear(self.x))
        current.wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = F.gelu(self.linear(self.x))

    @torch.no_grad()
    def forward(self, x):
        if self.graph is None:
            self.capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.out.clone()
