"""A loss without weights of its own: focal cross-entropy with label smoothing and class weights from a file."""

import json
from pathlib import Path

import torch
import torch.nn as nn

CLASS_WEIGHTS = json.loads((Path(__file__).parent / "class_weights.json").read_text())


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, smoothing=0.1):
        super().__init__()
        self.gamma = gamma
        self.smoothing = smoothing
        self.register_buffer("weights", torch.tensor(CLASS_WEIGHTS))

    def forward(self, logits, target):
        shifted = logits - logits.max(dim=-1, keepdim=True).values
        log_probabilities = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()
        one_hot = torch.zeros_like(logits).scatter(1, target[:, None], 1.0)
        smooth = one_hot * (1 - self.smoothing) + self.smoothing / logits.shape[-1]
        focal = (1 - log_probabilities.exp()) ** self.gamma
        losses = -(smooth * focal * log_probabilities * self.weights).sum(dim=-1)
        return losses.mean()


def example_inputs():
    return torch.randn(512, 10), torch.randint(0, 10, (512,))
