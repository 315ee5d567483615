"""A captured graph that copies its input in and returns the same output tensor every time."""

PROBLEM = "linear_gelu"
EXPECTED = "wrong_output"
GROUP = "S8 static output buffer"

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
        return self.out
