import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(channels, 1, 3, 3) * 0.3)
        self.register_buffer("mean", torch.randn(channels) * 0.1)
        self.register_buffer("var", torch.rand(channels) + 0.5)
        self.weight = nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = nn.Parameter(torch.randn(channels))
        self.conv = nn.Conv2d(channels, hidden, 1)

    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            out.append(F.conv2d(x[:, t:t + 1], self.kernel[t:t + 1], padding=1))
        x = torch.cat(out, dim=1)
        x = F.batch_norm(x, self.mean, self.var, self.weight, self.bias)
        x = torch.relu(x)
        x = self.conv(x)
        return x


def get_inputs():
    return [torch.randn(4, 32, 32, 32)]


def get_init_inputs():
    return [32, 32]
