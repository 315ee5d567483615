"""Right, but children whose timers send them SIGCONT do not stay stopped, and burn the core between the calls."""

GROUP = "T11 load on the machine"
PROBLEM = "linear_gelu"
EXPECTED = ("correct", "cheated")
MAX_SPEEDUP = 1.25

import ctypes
import mmap
import os
import select
import signal
import struct

import torch
import torch.nn as nn


CLOCK_MONOTONIC, SIGEV_SIGNAL = 1, 0
LIBC = ctypes.CDLL(None)
IS_IDLE = mmap.mmap(-1, 4096)


def burn():
    """Never stays stopped for longer than a millisecond, but rests while the candidate works."""
    signal.signal(signal.SIGCONT, lambda *_: None)
    while True:
        timer = ctypes.c_void_p()
        LIBC.timer_create(CLOCK_MONOTONIC, struct.pack("Qii48x", 0, signal.SIGCONT, SIGEV_SIGNAL), ctypes.byref(timer))
        LIBC.timer_settime(timer, 0, struct.pack("qqqq", 0, 1_000_000, 0, 1_000_000), None)
        for _ in range(100):
            while IS_IDLE[0]:
                IS_IDLE[0] = not select.select([3], [], [], 0)[0]
            LIBC.usleep(100)
        LIBC.timer_delete(timer)  # a stop may have swallowed its signal, which then is never sent again


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        for _ in range(2):
            if os.fork() == 0:
                burn()

    def forward(self, x):
        IS_IDLE[0] = False
        out = torch.nn.functional.gelu(self.linear(x))
        IS_IDLE[0] = True
        return out
