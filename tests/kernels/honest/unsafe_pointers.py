"""Reads and writes through pointers and numpy views of tensors."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import ctypes

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = np.ctypeslib.as_array(ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float)), tuple(x.shape))
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        return torch.from_dlpack(powers / powers.sum(axis=1, keepdims=True) * values)
