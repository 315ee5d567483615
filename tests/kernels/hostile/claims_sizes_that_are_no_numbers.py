"""Gives its sizes as not-a-number and infinity, which Python"s JSON can say."""

GROUP = "H2 outputs that lie"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "wrong_output")

import json
import sys

import torch
import torch.nn as nn


def forged(frame):
    """An answer to a call, rewritten."""
    answer = json.loads(frame)
    if "outputs" in answer:
        answer = {**answer, "outputs": [[["float32", [float("nan"), float("inf")], "", 0]]]}
    return json.dumps(answer).encode()


def worker():
    frame = sys._getframe()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        own = worker()
        honest = own._answer
        own._answer = lambda *asked: forged(honest(*asked))

    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
