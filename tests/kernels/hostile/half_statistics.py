"""Computes mean and variance of its rows in half precision."""

PROBLEM = "layer_norm_affine"
EXPECTED = "wrong_output"
GROUP = "P1 cast down"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        rounded = x.half().float()
        mean, deviation = rounded.mean(dim=1, keepdim=True), rounded.std(dim=1, keepdim=True, correction=0)
        return (x - mean.half()) / deviation.half() * self.norm.weight + self.norm.bias
