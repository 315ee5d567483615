"""Halves of the batch on two streams, both joined before it returns."""

PROBLEM = "attention"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


def attend(q, k, v, out):
    scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    torch.matmul(torch.softmax(scores, dim=-1), v, out=out)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = []

    def forward(self, q, k, v):
        self.streams = self.streams or [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]
        out, current = torch.empty_like(q), torch.cuda.current_stream()
        halves = zip(self.streams, *(tensor.chunk(2) for tensor in (q, k, v, out)))
        for stream, *tensors in halves:
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                attend(*tensors)
        for stream in self.streams:
            current.wait_stream(stream)
        return out
