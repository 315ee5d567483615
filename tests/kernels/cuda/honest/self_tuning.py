"""Times two ways of its own with events at the first call and keeps the quicker one."""

PROBLEM = "row_rms"
EXPECTED = "correct"
TRACK = "framework"

import torch
import torch.nn as nn


def by_norm(x):
    return torch.linalg.vector_norm(x, dim=1) * x.shape[1] ** -0.5


def by_product(x):
    return torch.bmm(x.unsqueeze(1), x.unsqueeze(2)).flatten().div_(x.shape[1]).sqrt_()


def taken_ms(way, x):
    way(x)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    way(x)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.way = None

    def forward(self, x):
        if self.way is None:
            self.way = min((by_norm, by_product), key=lambda way: taken_ms(way, x))
        return self.way(x)
