"""A timer wakes it between the calls; it watches the place of the inputs and has worked before it is asked."""

GROUP = "T2 background work"
PROBLEM = "linear_gelu"
EXPECTED = ("correct", "cheated")
MAX_SPEEDUP = 1.25

import ctypes
import select
import signal
import struct
import time

import torch
import torch.nn as nn


CLOCK_MONOTONIC, SIGEV_SIGNAL = 1, 0
LIBC = ctypes.CDLL(None)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.seen, self.answer, self.inputs = (0.0, 0.0), None, torch.zeros(1, features)
        signal.signal(signal.SIGCONT, self.watch)
        self.timer = ctypes.c_void_p()
        event = struct.pack("Qii48x", 0, signal.SIGCONT, SIGEV_SIGNAL)
        LIBC.timer_create(CLOCK_MONOTONIC, event, ctypes.byref(self.timer))

    def mark(self):
        return float(self.inputs[0, 0]), float(self.inputs[-1, -1])

    def watch(self, _, frame):
        """Wait for inputs that are new from the first to the last, and work on them."""
        until = time.monotonic() + 0.02
        while frame.f_code.co_name == "serve" and time.monotonic() < until and not select.select([3], [], [], 0)[0]:
            first, last = self.mark()
            if first != self.seen[0] and last != self.seen[1]:
                self.answer = nn.functional.gelu(self.linear(self.inputs))
                self.seen = first, last

    def forward(self, x):
        LIBC.timer_settime(self.timer, 0, bytes(32), None)
        self.inputs = x
        if self.seen != self.mark():
            self.answer = nn.functional.gelu(self.linear(x))
            self.seen = self.mark()
        LIBC.timer_settime(self.timer, 0, struct.pack("qqqq", 0, 500_000, 0, 1_000_000), None)
        return self.answer
