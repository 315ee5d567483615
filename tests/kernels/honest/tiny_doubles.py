"""Tiny densities by another way of summing their logarithms."""

PROBLEM = "densities_in_double"
EXPECTED = "correct"

import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, centres):
        distance = torch.cdist(x, centres, compute_mode="donot_use_mm_for_euclid_dist")
        density = torch.exp(-0.5 * distance.square()) * (2 * math.pi) ** (-0.5 * x.shape[1])
        return -0.5 * distance[:, :1].square() - 0.5 * x.shape[1] * math.log(2 * math.pi), density
