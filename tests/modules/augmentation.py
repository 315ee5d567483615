"""A data augmentation: colour jitter and a flip, with the random numbers drawn by whoever calls it."""

import torch
from torch import nn

LUMA = (0.299, 0.587, 0.114)


class ColourJitter(nn.Module):
    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)

    @staticmethod
    def grey(images):
        return sum(weight * images[:, i : i + 1] for i, weight in enumerate(LUMA))

    def forward(self, images, brightness, contrast, flips):
        images = images * brightness[:, None, None, None]
        level = self.grey(images).mean(dim=(1, 2, 3), keepdim=True)
        images = (images - level) * contrast[:, None, None, None] + level
        images = torch.where(flips[:, None, None, None], images.flip(-1), images)
        return (images.clamp(0.0, 1.0) - self.mean) / self.std


def example_inputs():
    count = 4
    return [
        torch.rand(count, 3, 48, 48),
        torch.rand(count) + 0.5,
        torch.rand(count) + 0.5,
        torch.rand(count) > 0.5,
    ]
