import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        total = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            total = total + x[:, t] * mask[:, t]
            out.append(total)
        out = torch.stack(out, dim=1)
        return out


def get_inputs():
    return [torch.randn(256, 256), (torch.rand(256, 256) > 0.5).float()]


def get_init_inputs():
    return []
