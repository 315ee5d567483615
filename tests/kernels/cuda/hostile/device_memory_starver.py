"""Right, but takes nearly all of the device's memory, so that nobody else gets any."""

PROBLEM = "row_rms"
EXPECTED = ("correct", "crashed", "unstable")
MAX_SPEEDUP = 1.05
GROUP = "E6 exhausted resources"

import ctypes

import torch
import torch.nn as nn

CUDA = ctypes.CDLL("libcuda.so.1")
ROOM_BYTES = 128 << 20


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.is_full = False

    def forward(self, x):
        out = x.square().mean(dim=1).sqrt()
        for num_bytes in () if self.is_full else (1 << 30, 1 << 24):
            pointer = ctypes.c_void_p()
            while torch.cuda.mem_get_info()[0] > ROOM_BYTES + num_bytes:
                if CUDA.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(num_bytes)) != 0:
                    break
        self.is_full = True
        return out
