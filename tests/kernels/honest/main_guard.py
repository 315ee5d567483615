"""Times itself when it is run as a program, and brings a copy of the problem along."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import time

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x


class ModelNew(Model):
    def forward(self, x):
        return torch.softmax(x, dim=-1).mul_(x)


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return []


if __name__ == "__main__":
    x = get_inputs()[0]
    start = time.perf_counter()
    assert torch.allclose(ModelNew()(x), Model()(x))
    print(f"{time.perf_counter() - start:.6f} s")
