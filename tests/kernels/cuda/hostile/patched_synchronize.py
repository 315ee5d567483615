"""Nothing waits any more, and the work is on another stream; everything twice."""

PROBLEM = "linear_gelu"
EXPECTED = ("correct", "wrong_output", "cheated")
MAX_SPEEDUP = 1.05
GROUP = "T1 patched clock"

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.cuda.synchronize = lambda device=None: None
for waiting in (torch.cuda.Stream, torch.cuda.Event):
    waiting.synchronize = lambda self: None
    waiting.query = lambda self: True


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.side = None

    def forward(self, x):
        self.side = self.side or torch.cuda.Stream()
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.linear(x)
            return F.gelu(self.linear(x))
