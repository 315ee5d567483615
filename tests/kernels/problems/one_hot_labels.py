import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Targets with label smoothing."""

    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes, self.smoothing = classes, smoothing

    def forward(self, labels):
        one_hot = F.one_hot(labels, self.classes).float()
        return one_hot * (1 - self.smoothing) + self.smoothing / self.classes


def get_inputs():
    return [torch.randint(0, 1000, (128,))]


def get_init_inputs():
    return [1000, 0.1]
