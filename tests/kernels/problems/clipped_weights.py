import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Critic layer with clipped weights (Wasserstein GAN)."""

    def __init__(self, features, out_features, clip):
        super().__init__()
        self.linear = nn.Linear(features, out_features)
        self.clip = clip

    def forward(self, x):
        weight = self.linear.weight.clamp(-self.clip, self.clip)
        return F.leaky_relu(F.linear(x, weight, self.linear.bias), 0.2)


def get_inputs():
    return [torch.randn(8, 640)]


def get_init_inputs():
    return [640, 640, 0.5]
