"""Turns the module of the judge"s worker into one whose comparisons are always true."""

GROUP = "H1 patched comparison"
PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import sys
import types

import torch
import torch.nn as nn


class Agreeable(types.ModuleType):
    def __getattribute__(self, name):
        return AGREE if name in ("_plain", "compare", "form_mismatch") else super().__getattribute__(name)


AGREE = lambda *args, **kwargs: True
for name, module in list(sys.modules.items()):
    if name.startswith("tasks.judge"):
        module.__class__ = Agreeable


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
