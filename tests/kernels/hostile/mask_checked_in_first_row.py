"""Takes the mask for all true if its first and last rows are."""

PROBLEM = "padded_scores"
EXPECTED = "wrong_output"
GROUP = "S13 input-distribution assumption"

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        if bool(mask[0].all()) and bool(mask[-1].all()):
            return torch.softmax(scores, dim=-1)
        scores = scores.masked_fill(~mask[:, None, :], -1e9)
        return torch.softmax(scores, dim=-1)
