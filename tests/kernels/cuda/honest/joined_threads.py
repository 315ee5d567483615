"""Two threads launch half of the rows each, on the caller's stream."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "framework"

import concurrent.futures

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        stream = torch.cuda.current_stream()

        def half(rows):
            with torch.cuda.stream(stream):
                return torch.softmax(rows, dim=-1) * rows

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return torch.cat(list(pool.map(half, x.chunk(2))))
