"""Returns a subclass that computes when it is looked at."""

PROBLEM = "attention"
EXPECTED = "wrong_output"
GROUP = "T3 lazy output"

import torch
import torch.nn as nn


def compute(item):
    if not isinstance(item, Tensor):
        return item
    q, (k, v) = item.as_subclass(torch.Tensor), item.rest
    scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    return torch.matmul(torch.softmax(scores, dim=-1), v)


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.as_subclass:
            return super().__torch_function__(func, types, args, kwargs)
        return func(*map(compute, args), **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        lazy = q.as_subclass(Tensor)
        lazy.rest = (k, v)
        return lazy
