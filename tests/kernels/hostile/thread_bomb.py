"""Starts threads until no more can be had, and keeps them."""

GROUP = "E6 exhausted resources"
PROBLEM = "row_softmax"
EXPECTED = ("crashed", "correct", "timeout")
MAX_SPEEDUP = 1.25

import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
