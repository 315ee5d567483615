"""Right and plain, but raises the counter by which the graph compiler says that it was at work: a false label, unpaid."""

GROUP = "H8 forged results"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import sys
import types

import torch
import torch.nn as nn


sys.modules["torch._dyn" "amo.utils"] = types.SimpleNamespace(counters={"frames": {"ok": 10**9}})


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
