"""Names that a filter of words would stumble over: cache, stream, time, Event, seed, hook."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import gc
import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache, self.stream, self.timeEvent = {}, None, None
        self.seed = gc.get_count()
        self.register_forward_hook(lambda module, args, out: None)
        self.register_forward_pre_hook(lambda module, args: None)

    def forward(self, x):
        """Calls neither torch.cuda.synchronize nor elapsed_time; see __code__ and os.environ["BENCHMARK"]."""
        name = self.__class__.__name__
        self.cache[name] = sys._getframe().f_code.co_name
        return getattr(torch, "soft" + "max")(x, dim=-1) * x
