"""Runs its halves as tasks of an event loop."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import asyncio

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    async def halves(self, x):
        return await asyncio.gather(asyncio.to_thread(torch.mean, x, dim=1), asyncio.to_thread(torch.std, x, dim=1))

    def forward(self, x):
        return tuple(asyncio.run(self.halves(x)))
