"""Winograd's convolution of two by two outputs, with the transforms as small products."""

PROBLEM = "conv_norm_eval"
EXPECTED = "correct"

import torch
import torch.nn as nn
import torch.nn.functional as F


INTO = [[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]
KERNEL = [[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]
BACK = [[1.0, 1, 1, 0], [0, 1, -1, -1]]


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)
        self.eval()
        self.register_buffer("into", torch.tensor(INTO), persistent=False)
        self.register_buffer("kernel", torch.tensor(KERNEL), persistent=False)
        self.register_buffer("back", torch.tensor(BACK), persistent=False)

    def forward(self, x):
        batch, _, height, width = x.shape
        tiles = F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
        tiles = self.into @ tiles @ self.into.t()
        filters = self.kernel @ self.conv.weight @ self.kernel.t()
        out = self.back @ torch.einsum("bchwij,ocij->bohwij", tiles, filters) @ self.back.t()
        out = out.permute(0, 1, 2, 4, 3, 5).reshape(batch, -1, height, width)
        return torch.relu(self.norm(out + self.conv.bias.view(-1, 1, 1)))
