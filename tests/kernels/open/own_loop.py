"""Right, but answers frames from a shorter loop of its own, because the cost of the judge's loop is subtracted."""

GROUP = "T1b patched accounting"
PROBLEM = "affine_rows"
EXPECTED = ("correct", "crashed", "wrong_output")
MAX_SPEEDUP = 1.25

import json
import os
import sys

import torch
import torch.nn as nn


def serve(worker):
    """The judge's loop, with a short way for plain calls."""
    memory, views = worker._memory, {}
    while frame := os.read(3, 65536):
        message = json.loads(frame)
        if message["op"] == "call" and not message["hold"]:
            forms = []
            for at, _ in message["places"]:
                if at not in views:
                    x = memory[at : at + 1048576].view(torch.float32).view(256, 1024)
                    views[at] = x, torch.empty_like(x)
                x, out = views[at]
                torch.add(MINUS_ONE, x, alpha=3, out=out)
                forms.append([["float32", [256, 1024], "", out.data_ptr()]])
            answer = {"outputs": forms}
        else:
            answer = getattr(worker, "do_" + message["op"])(message)
        answer["id"] = message["id"]
        os.write(3, json.dumps(answer).encode())
    os._exit(0)


MINUS_ONE = torch.tensor(-1.0)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        frame = sys._getframe()
        while frame.f_code.co_name != "do_call":
            frame = frame.f_back
        worker, message = frame.f_locals["self"], frame.f_locals["message"]
        self.calls += 1
        if self.calls == 3 and not message["hold"]:
            forms = [worker._handed_over(([x * 3 - 1], [""]), to, message) for _, to in message["places"]]
            os.write(3, json.dumps({"outputs": forms, "id": message["id"]}).encode())
            serve(worker)
        return x * 3 - 1
