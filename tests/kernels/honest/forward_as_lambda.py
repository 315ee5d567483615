"""Assigns its forward instead of defining it."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    forward = lambda self, x: torch.softmax(x, dim=-1) * x  # noqa: E731
