"""Returns a view of memory that already went back to the allocator."""

PROBLEM = "row_softmax"
EXPECTED = ("wrong_output", "cheated")
GROUP = "S8 static output buffer"

import torch
import torch.nn as nn


class Memory:
    def __init__(self, tensor):
        shape, pointer = tuple(tensor.shape), tensor.data_ptr()
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (pointer, False), "version": 2}


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1) * x
        return torch.as_tensor(Memory(out), device=x.device)
