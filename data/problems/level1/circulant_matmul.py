import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        out = []
        for t in range(a.shape[0]):
            out.append(torch.roll(a, t))
        out = torch.stack(out, dim=0)
        out = torch.matmul(out, b)
        return out


def get_inputs():
    return [torch.randn(384) * 0.05, torch.randn(384, 256)]


def get_init_inputs():
    return []
