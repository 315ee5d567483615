"""Right, but leaves threads in long system calls, which end when they end, to share the core with the reference."""

GROUP = "T9 slowed reference"
PROBLEM = "linear_gelu"
EXPECTED = ("correct", "timeout")
MAX_SPEEDUP = 1.25

import os
import threading

import torch
import torch.nn as nn


SIZE, TIMES, HELPERS = 1 << 20, 24, 2


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        with open("large", "wb") as file:
            file.write(bytes(SIZE * TIMES))
        self.file, buffer = os.open("large", os.O_RDONLY), bytearray(SIZE)
        self.buffers = [buffer] * TIMES
        self.gates = [threading.Lock() for _ in range(HELPERS)]
        for gate in self.gates:
            gate.acquire()
            threading.Thread(target=self.read, args=(gate,), daemon=True).start()

    def read(self, gate):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while True:
            gate.acquire()
            os.preadv(self.file, self.buffers, 0)

    def forward(self, x):
        out = nn.functional.gelu(self.linear(x))
        for gate in self.gates:
            if gate.locked():
                gate.release()
        return out
