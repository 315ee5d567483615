"""Complex numbers turned back by phases, which are given as numbers of length 1."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, z, phases):
        return torch.view_as_real(z / phases)


def get_inputs():
    z = torch.complex(torch.randn(64, 256), torch.randn(64, 256))
    return [z, torch.polar(torch.ones(64, 256), 6.28 * torch.rand(64, 256))]


def get_init_inputs():
    return []
