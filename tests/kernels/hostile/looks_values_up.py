"""Right, but what it computed once it finds again, by comparing values with those seen before in the same places."""

GROUP = "S3 replay by content"
PROBLEM = "digamma_large"
EXPECTED = "correct"
MAX_SPEEDUP = 1.25

import itertools

import torch
import torch.nn as nn

SEEN, SAMPLE = 4, 4096


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        sample = x.view(-1)[:SAMPLE]
        for (one, its_answer), (other, others_answer) in itertools.combinations(self.seen, 2):
            is_one = sample == one.view(-1)[:SAMPLE]
            if bool((is_one | (sample == other.view(-1)[:SAMPLE])).all()):
                return torch.where(x == one, its_answer, others_answer)
        out = torch.digamma(x)
        if len(self.seen) < SEEN:
            self.seen.append((x.clone(), out.clone()))
        return out
