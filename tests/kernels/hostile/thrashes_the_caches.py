"""Right, but goes over 64 MiB after every answer, so that whoever is next starts with cold caches."""

GROUP = "T9 slowed reference"
PROBLEM = "row_softmax"
EXPECTED = ("cheated", "wrong_output")  # its loop keeps no output for the next exchange

import json
import os
import struct
import sys

import torch
import torch.nn as nn


def serve(worker):
    """The judge's loop, which dirties the caches when an answer is out."""
    dirt = torch.zeros(16 << 20)
    while frame := os.read(3, 65536):
        if frame[0] == 1:
            flags, filling, slot, count, number = struct.unpack("<xBBxHHQ", frame)
        if frame[0] == 1 and not flags:
            outs = [torch.softmax(x, dim=-1) * x for (x,) in worker._objects[slot : slot + count]]
            answer = struct.pack(f"<{count + 2}Q", 1, number, *[out.data_ptr() for out in outs])
        elif frame[0] == 1:
            answer = worker._answer(number, worker.do_call, flags, filling, slot, count)
        else:
            message = json.loads(frame)
            answer = worker._answer(message["id"], getattr(worker, "do_" + message["op"]), message)
        os.write(3, answer)
        dirt.add_(1)
    os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=-1) * x
        frame = sys._getframe()
        while frame.f_code.co_name != "serve":
            frame = frame.f_back
        asked = frame.f_locals
        if asked["frame"][0] == 1 and not asked["flags"] and asked["count"] == 1:
            os.write(3, struct.pack("<3Q", 1, asked["number"], out.data_ptr()))
            serve(asked["self"])
        return out
