"""Returns a subclass that computes when it is looked at."""

PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [torch.softmax(a.as_subclass(torch.Tensor), dim=-1) * a.as_subclass(torch.Tensor) for a in args[:1]]
        return func(*plain, *args[1:], **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        return x.as_subclass(Tensor)
