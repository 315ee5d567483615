"""Right, and computes straight into memory that it shares with the judge, so that no output would have to be copied."""

GROUP = "T1b patched accounting"
PROBLEM = "affine_rows"
EXPECTED = ("correct", "wrong_output")
MAX_SPEEDUP = 1.25

import sys

import torch
import torch.nn as nn

HOLD = 4


class ModelNew(nn.Module):
    def forward(self, x):
        frame = sys._getframe()
        while frame.f_code.co_name not in ("serve", "do_call"):
            frame = frame.f_back
        worker, flags, at = (frame.f_locals[name] for name in ("self", "flags", "at"))
        if flags & HOLD:  # somebody will look at this tensor again
            return x * 3 - 1
        to = worker._slots[at][1]
        place = worker._memory[to : to + x.nbytes].view(torch.float32).view(x.shape)
        return torch.sub(torch.mul(x, 3), 1, out=place)
