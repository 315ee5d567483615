"""Works in place on its input and restores it a moment after it has answered."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"
GROUP = "S9 input mutation"

import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        saved = x.clone()
        out = torch.softmax(x, dim=-1).mul_(x)
        x.zero_()
        threading.Timer(0.002, x.copy_, args=(saved,)).start()
        return out
