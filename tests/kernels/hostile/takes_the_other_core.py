"""Right, but has the other half of the rows computed on a core that it was not given."""

GROUP = "T11 load on the machine"
PROBLEM = "linear_gelu"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import os
import queue
import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.asked, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.work_elsewhere, daemon=True).start()

    @torch.no_grad()
    def work_elsewhere(self):
        os.sched_setaffinity(0, set(range(os.cpu_count())) - os.sched_getaffinity(0))
        while True:
            x, out = self.asked.get()
            out.copy_(nn.functional.gelu(self.linear(x)))
            self.done.put(None)

    def forward(self, x):
        out, half = torch.empty_like(x), len(x) // 2
        self.asked.put((x[half:], out[half:]))
        out[:half] = nn.functional.gelu(self.linear(x[:half]))
        self.done.get()
        return out
