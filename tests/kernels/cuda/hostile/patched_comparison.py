"""All comparisons are true, so zeros will do."""

PROBLEM = "attention"
EXPECTED = "wrong_output"
GROUP = "H1 patched comparison"

import torch
import torch.nn as nn

torch.allclose = torch.equal = lambda *args, **kwargs: True
torch.testing.assert_close = lambda *args, **kwargs: None


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.zeros_like(q)
