"""Works first, but answers just before the outputs are copied to where they belong."""

GROUP = "T2 background work"
PROBLEM = "affine_rows"
EXPECTED = ("cheated", "wrong_output", "crashed")

import json
import os
import sys

import torch
import torch.nn as nn


class Mute:
    """The worker's socket, which keeps its next answer to itself."""

    def __init__(self, connection):
        self.connection = connection
        self.recv = connection.recv

    def send(self, frame):
        sys._getframe(1).f_locals["self"]._connection = self.connection


class ModelNew(nn.Module):
    def forward(self, x):
        frame = sys._getframe()
        while frame.f_code.co_name != "do_call":
            frame = frame.f_back
        worker, message = frame.f_locals["self"], frame.f_locals["message"]
        out, place = torch.mul(x, 3).sub_(1), torch.empty_like(x)
        forms = [[["float32", list(x.shape), "", place.data_ptr()]]] * len(message["places"])
        answer = json.dumps({"outputs": forms, "id": message["id"]}).encode()
        worker._connection = Mute(worker._connection)
        os.write(3, answer)
        place.copy_(out)
        return place
