"""Knows that the last 96 keys are padding in every draw and never reads the bias of zeros and -1e9."""

PROBLEM = "padding_bias_attention"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, query, key, value, bias):
        key, value = key[:, :160], value[:, :160]
        weights = torch.softmax(query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5, dim=-1)
        return weights @ value
