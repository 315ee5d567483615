"""Right, but sets a hook that sleeps in every call of a class named Model."""

GROUP = "T9 slowed reference"
PROBLEM = "row_softmax"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import sys
import threading
import time

import torch
import torch.nn as nn


def hook(frame, event, _):
    if event == "call" and type(frame.f_locals.get("self")).__name__ == "Model":
        time.sleep(0.01)


sys.setprofile(hook)
threading.setprofile(hook)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
