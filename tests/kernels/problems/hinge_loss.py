import torch
import torch.nn as nn


class Model(nn.Module):
    """Hinge loss for binary classification."""

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    return [torch.rand(512, 768), torch.randint(0, 2, (512, 1)).float() * 2 - 1]


def get_init_inputs():
    return []
