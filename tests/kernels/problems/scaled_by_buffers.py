import torch
import torch.nn as nn


class Model(nn.Module):
    """Shifted and scaled by statistics that nobody has gathered yet."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("shift", torch.zeros(()))

    def forward(self, x):
        return (x - self.shift) / self.scale * 3.0


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
