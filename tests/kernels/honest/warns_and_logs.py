"""Warns, logs to a file and keeps going after errors."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import logging
import os
import tempfile
import warnings

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        warnings.warn("softmax may be slow", stacklevel=1)
        logging.warning("shape %s", x.shape)
        with open(os.path.join(tempfile.gettempdir(), "calls.log"), "a") as file:
            file.write(f"{x.shape}\n")
        try:
            raise NotImplementedError
        except Exception:
            pass
        return torch.softmax(x, dim=-1) * x
