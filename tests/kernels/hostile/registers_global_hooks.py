"""Registers a hook on all modules that replaces whatever they return by zeros."""

GROUP = "H5 tampered reference"
PROBLEM = "row_softmax"
EXPECTED = "wrong_output"

import torch
import torch.nn as nn


torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: torch.zeros_like(out))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) * x
