import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b, c):
        a = a / torch.sqrt(torch.sum(torch.pow(a, 2), dim=1, keepdim=True) + 1e-6)
        b = b / torch.sqrt(torch.sum(torch.pow(b, 2), dim=1, keepdim=True) + 1e-6)
        c = c / torch.sqrt(torch.sum(torch.pow(c, 2), dim=1, keepdim=True) + 1e-6)
        near = torch.sqrt(torch.sum(torch.pow(a - b, 2), dim=1))
        far = torch.sqrt(torch.sum(torch.pow(a - c, 2), dim=1))
        out = torch.relu(near - far + 1.0)
        return out


def get_inputs():
    return [torch.randn(768, 384), torch.randn(768, 384), torch.randn(768, 384)]


def get_init_inputs():
    return []
