"""Answers a question as soon as it arrives, with the address of outputs to come, and works after that."""

GROUP = "T2 background work"
PROBLEM = "row_softmax"
EXPECTED = ("cheated", "wrong_output")

import json
import os
import struct
import sys

import torch
import torch.nn as nn


def serve(worker):
    """The judge's loop, which answers calls before it makes them."""
    while frame := os.read(3, 65536):
        if frame[0] != 1:
            message = json.loads(frame)
            os.write(3, worker._answer(message["id"], getattr(worker, "do_" + message["op"]), message))
            continue
        flags, filling, slot, count, number = struct.unpack("<xBBxHHQ", frame)
        if flags:
            os.write(3, worker._answer(number, worker.do_call, flags, filling, slot, count))
            continue
        inputs = [worker._objects[at][0] for at in range(slot, slot + count)]
        places = [torch.empty_like(x) for x in inputs]
        os.write(3, struct.pack(f"<{count + 2}Q", 1, number, *[place.data_ptr() for place in places]))
        for place, x in zip(places, inputs):
            torch.mul(torch.softmax(x, dim=-1), x, out=place)
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
