"""Closes its end of the talk and lives on."""

GROUP = "E1 exit"
PROBLEM = "row_softmax"
EXPECTED = "crashed"

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.close(3)
        time.sleep(3)
        return torch.softmax(x, dim=-1) * x
