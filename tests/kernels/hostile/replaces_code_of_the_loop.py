"""Replaces the code of the function that takes outputs apart by one that takes everything for a tensor."""

GROUP = "H1 patched comparison"
PROBLEM = "row_softmax"
EXPECTED = ("wrong_output", "crashed")

import sys
import types

import torch
import torch.nn as nn


class Anything:
    """Is equal to everything and has every attribute."""

    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


for name, module in list(sys.modules.items()):
    for function in list(vars(module).values()) if name.startswith("tasks.judge") else ():
        if isinstance(function, types.FunctionType) and function.__name__ in ("_plain", "flattened"):
            function.__code__ = (lambda result: [result]).__code__


class ModelNew(nn.Module):
    def forward(self, x):
        return Anything()
