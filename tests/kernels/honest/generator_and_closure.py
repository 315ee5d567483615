"""Lambdas, closures, a generator, a walrus and a match."""

PROBLEM = "row_statistics"
EXPECTED = "correct"

import functools
import torch; import torch.nn as nn


def statistics(*functions):
    def run(x): yield from (function(x) for function in functions)
    return run


class ModelNew(nn.Module):
    run = staticmethod(statistics(lambda x: x.mean(1), functools.partial(torch.std, dim=1)))

    def forward(self, x, /, *rest, **options):
        match x.dim():
            case 2 if (found := [*self.run(x)]): return (*found,)
            case _: raise ValueError(x.shape)
