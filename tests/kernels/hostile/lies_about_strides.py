"""Describes its output with strides of 0, which make a whole matrix of four bytes."""

GROUP = "H2 outputs that lie"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "wrong_output")

import json
import sys

import torch
import torch.nn as nn


def forged(frame):
    """An answer to a call, with strides in its forms."""
    answer = json.loads(frame)
    for forms in answer.get("outputs", []):
        forms[:] = [[form[0], form[1], [0] * len(form[1])] for form in forms]
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
