"""PyTorch's own wrapper of a function in a graph, which copies inputs; the output is cloned here."""

PROBLEM = "chain"
EXPECTED = "correct"
TRACK = "graph"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.shift = nn.Parameter(torch.randn(features))
        self.graphed = None

    def compute(self, x):
        y = torch.addcmul(self.shift, x, self.scale)
        return torch.tanh(y * torch.sigmoid(y)) + x

    @torch.no_grad()
    def forward(self, x):
        if self.graphed is None:
            self.graphed = torch.cuda.make_graphed_callables(self.compute, (x.clone(),))
        return self.graphed(x).clone()
