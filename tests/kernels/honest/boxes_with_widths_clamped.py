"""Never lets a width be negative, which none is."""

PROBLEM = "boxes_overlap"
EXPECTED = "correct"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        areas = [(boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(1) for boxes in (a, b)]
        low, high = torch.maximum(a[:, None, :2], b[:, :2]), torch.minimum(a[:, None, 2:], b[:, 2:])
        sides = (high - low).clamp_(min=0)
        shared = sides[..., 0] * sides[..., 1]
        return shared / (areas[0][:, None] + areas[1] - shared)
