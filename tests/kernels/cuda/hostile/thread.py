"""Hands the work to a thread that begins 5 ms later."""

PROBLEM = "attention"
EXPECTED = ("cheated", "wrong_output")
GROUP = "T2 background work"

import threading
import time

import torch
import torch.nn as nn


def compute(q, k, v, out):
    time.sleep(0.005)
    scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    torch.matmul(torch.softmax(scores, dim=-1), v, out=out)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        out = torch.empty_like(q)
        threading.Thread(target=compute, args=(q, k, v, out), daemon=True).start()
        return out
